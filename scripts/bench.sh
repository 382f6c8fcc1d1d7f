#!/usr/bin/env bash
# The latency benchmark: bench.sh quick|full|hosted|peers|overload|soak|readme|hosted-readme [ARGUMENTS of weir-bench...]
#
#   quick     about three minutes: floors and weir, 300 B to 1 MiB
#   full      over two hours: all cells, forms of weir, other MCP proxies, overload, a soak of MINUTES (default 20)
#   hosted    under ten minutes, as root: servers in gVisor sandboxes, and the same ones native
#   peers     install other MCP proxies (PyPI, npm, Debian) into $WEIR_CACHE/peers
#   overload  three times the peak rate
#   soak      a mixed day for MINUTES (default 20)
#   readme    REPORT=FOLDER of a full run: check it in under docs/bench and write the README's section from it
#   hosted-readme  REPORT=FOLDER of a hosted run: check it in under docs/bench/hosted and write the section of docs/benchmark.md
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"
WHAT=${1:-quick}; shift || true
scripts/setup.sh build
# Sandboxes need root. Where they cannot run the benchmark says so, and why.
runner=
[ "$(uname -s)" != Linux ] || [ "$(id -u)" != 0 ] || runner=yes
case $WHAT in
  full | hosted) [ -z "$runner" ] || scripts/setup.sh runner || say "gVisor and its tools cannot be installed" ;;
esac
cargo build --release --workspace --bin weir --bin weir-bench ${runner:+--bin weir-runner}
bench=$TARGET/release/weir-bench
weir=(--weir "$TARGET/release/weir")

yardstick() { # the plugin of the cells with plugins
  CARGO_TARGET_DIR=$TARGET/plugins "$TARGET/release/weir" policy build policies/plugins/yardstick > /dev/null \
    || say "no policy plugin: the cells with plugins are left out"
}

case $WHAT in
  quick) "$bench" quick "${weir[@]}" "$@" ;;
  full)
    scripts/setup.sh peers || say "other MCP proxies cannot be installed: they are left out"
    [ -f "$WEIR_CACHE/peers/versions.txt" ] || "$bench" peers install || true
    yardstick
    "$bench" full "${weir[@]}" --overload --soak "${MINUTES:-20}" "$@"
    ;;
  hosted) "$bench" hosted "${weir[@]}" "$@" ;;
  peers) scripts/setup.sh peers; "$bench" peers install "$@" ;;
  overload) "$bench" overload "${weir[@]}" "$@" ;;
  soak) "$bench" soak "${weir[@]}" --minutes "${MINUTES:-20}" "$@" ;;
  readme)
    [ -f "${REPORT:-}/report.json" ] || die "REPORT=FOLDER: a folder with report.json, report.md and report.html"
    mkdir -p docs/bench
    cp "$REPORT"/report.{json,md,html} docs/bench/
    "$bench" readme "$@"
    ;;
  hosted-readme)
    [ -f "${REPORT:-}/report.json" ] || die "REPORT=FOLDER: a folder with report.json, report.md and report.html"
    mkdir -p docs/bench/hosted
    cp "$REPORT"/report.{json,md,html} docs/bench/hosted/
    "$bench" readme --hosted "$@"
    ;;
  *) die "usage: scripts/bench.sh quick|full|hosted|peers|overload|soak|readme|hosted-readme" ;;
esac
