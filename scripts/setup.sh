#!/usr/bin/env bash
# Install what building, running or testing Weir needs. Safe to run again; quick when nothing is to do.
#
#   scripts/setup.sh build    compiler and libraries
#   scripts/setup.sh run      build, and a real MCP server to put Weir in front of
#   scripts/setup.sh fuzz     build, libhs and cargo-fuzz
#   scripts/setup.sh runner   build, and what hosting needs: gVisor, nftables and the tools for root file systems
#   scripts/setup.sh vm       runner, and what runs its tests in a virtual machine
#   scripts/setup.sh plugins  build, and what makes plugins of JavaScript
#   scripts/setup.sh peers    build, and what `weir-bench peers install` and the cells with TLS need
#   scripts/setup.sh test     run, and the conformance suite, other people's clients and servers, libhs, cargo tools
#
# System packages come from apt (root or sudo). All else goes to $WEIR_CACHE (default ~/.cache/weir), nothing
# into the checkout. Exact versions are in tests/kit; a part is installed again when its lock file changes.
set -euo pipefail
. "$(dirname "$0")/env.sh"
WHAT=${1:-run}
NEXTEST=0.9.143
DENY=0.20.2
FUZZ=0.13.2

main() {
  mkdir -p "$WEIR_CACHE"
  exec 9> "$WEIR_CACHE/setup.lock"
  flock 9 # two runs at once would install over each other
  case $WHAT in
    build) build ;;
    run) build; kit_run ;;
    plugins) build; have npm || apt_install npm; npm_part node22; use_node; npm_part componentize ;;
    fuzz) build; libhs; cargo fuzz --version > /dev/null 2>&1 || cargo_tool cargo-fuzz "$FUZZ" ;;
    peers) build; peers ;;
    runner) build; runner_tools ;;
    vm) build; runner_tools; vm_tools ;;
    test) build; libhs; kit_run; kit_test; cargo_tools; runner_tools ;;
    *) die "usage: scripts/setup.sh build|run|runner|vm|fuzz|plugins|peers|test" ;;
  esac
}

build() {
  local need=()
  have cmake || need+=(cmake)
  have cc || need+=(gcc libc6-dev)
  have g++ || need+=(g++)
  have clang || need+=(clang)
  have ld.lld || need+=(lld)
  have pkg-config || need+=(pkg-config)
  have make || need+=(make)
  have git || need+=(git ca-certificates)
  have curl || need+=(curl ca-certificates)
  apt_install "${need[@]}"
  if ! have cargo; then
    if have rustup; then rustup show active-toolchain > /dev/null || rustup toolchain install; fi
    have cargo || die "Rust is missing. Install rustup, then run this again:
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
The right compiler version is then fetched by itself (rust-toolchain.toml)."
  fi
  (cd "$ROOT" && cargo --version > /dev/null) || die "cargo cannot use the toolchain named in rust-toolchain.toml"
  # Policy plugins are built for it.
  if have rustup; then
    (cd "$ROOT" && rustup target list --installed | grep -qx wasm32-unknown-unknown || retry rustup target add wasm32-unknown-unknown)
  fi
}

# For the optional engine; Hyperscan's package has the same library and will do.
libhs() { pkg-config --exists libhs || apt_install libvectorscan-dev; }

kit_run() {
  have npm || apt_install npm
  npm_part node22
  use_node
  npm_part everything
}

kit_test() {
  npm_part conf
  npm_part conf-old
  npm_part inspector
  npm_part clients
  npm_part componentize
  local need=()
  have python3 || need+=(python3)
  have openssl || need+=(openssl)
  have valgrind || need+=(valgrind) # counts instructions for the regression gate
  python3 -c 'import venv, ensurepip' 2> /dev/null || need+=(python3-venv)
  apt_install "${need[@]}"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || die "python3 is older than 3.10"
  venv_part py py2.txt
  venv_part pyold py1.txt
  everything_py
}

# What weir-runner hosts servers with. Only Linux as root can run it; elsewhere its tests say so.
runner_tools() {
  [ "$(uname -s)" = Linux ] && have apt-get || return 0
  local need=()
  have nft || need+=(nftables)
  have ip || need+=(iproute2)
  have mkfs.ext4 || need+=(e2fsprogs)
  have mmdebstrap || need+=(mmdebstrap)
  python3 -m pip --version > /dev/null 2>&1 || need+=(python3-pip)
  have curl || need+=(curl ca-certificates)
  apt_install "${need[@]}"
  have runsc || gvisor
}

# Debian 12 has it in its backports; later releases have it in main. The mirror is the one that this machine uses.
gvisor() {
  local suite backports=/etc/apt/sources.list.d/weir-backports.list
  suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  if [ "$suite" = bookworm ] && ! apt-cache policy 2> /dev/null | grep -q bookworm-backports; then
    local mirror sudo=()
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -1 | tr -d ' ' || true)
    say "adding bookworm-backports for gVisor"
    [ "$(id -u)" = 0 ] || sudo=(sudo)
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian} bookworm-backports main" |
      "${sudo[@]}" tee "$backports" > /dev/null
    apt_updated=
  fi
  if [ "$suite" = bookworm ]; then apt_install -t bookworm-backports runsc; else apt_install runsc; fi
}

# An emulator, and Debian's kernel for virtual machines, which is unpacked and not installed.
vm_tools() {
  local need=() kernel
  have qemu-system-x86_64 || need+=(qemu-system-x86)
  have busybox && busybox cpio --help > /dev/null 2>&1 || need+=(busybox-static)
  # Where a part of it came from the backports before, the rest has to.
  apt_install "${need[@]}" || apt_install -t "$(. /etc/os-release && echo "$VERSION_CODENAME")-backports" "${need[@]}"
  kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p' | head -1)
  [ -n "$kernel" ] || die "apt knows no linux-image-cloud-amd64; the machine for it is Debian on amd64"
  if [ ! -e "$WEIR_CACHE/vm/$kernel" ]; then
    say "unpacking $kernel"
    rm -rf "$WEIR_CACHE/vm"; mkdir -p "$WEIR_CACHE/vm"
    (cd "$WEIR_CACHE/vm" && apt-get download -qq "$kernel" 2> /dev/null && dpkg -x "$kernel"_*.deb . && rm "$kernel"_*.deb)
    busybox depmod -b "$WEIR_CACHE/vm" "${kernel#linux-image-}" 2> /dev/null || true
    touch "$WEIR_CACHE/vm/$kernel"
  fi
}

# Other MCP proxies and web servers to measure beside, and a certificate for TLS.
peers() {
  local need=()
  have npm || need+=(npm)
  have python3 || need+=(python3)
  python3 -c 'import venv, ensurepip' 2> /dev/null || need+=(python3-venv)
  have openssl || need+=(openssl)
  [ -x /usr/sbin/nginx ] || have nginx || need+=(nginx-light)
  [ -x /usr/sbin/haproxy ] || have haproxy || need+=(haproxy)
  apt_install "${need[@]}"
}

cargo_tools() {
  cargo nextest --version > /dev/null 2>&1 || cargo_tool cargo-nextest "$NEXTEST"
  cargo deny --version > /dev/null 2>&1 || cargo_tool cargo-deny "$DENY"
}

have() { command -v "$1" > /dev/null 2>&1; }

apt_install() {
  [ $# -gt 0 ] || return 0
  have apt-get || die "please install: $*"
  local sudo=()
  [ "$(id -u)" = 0 ] || { have sudo || die "please install (as root): apt-get install -y $*"; sudo=(sudo); }
  say "apt-get install $*"
  if [ -z "${apt_updated:-}" ]; then "${sudo[@]}" apt-get update -qq; apt_updated=1; fi
  # A fresh machine may still be at its own first updates: they are waited for.
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq -o DPkg::Lock::Timeout=600 --no-install-recommends "$@" > /dev/null
}

# part_is_new NAME FILE...: true when the part was not installed from exactly these files.
part_is_new() {
  local dir=$WEIR_KIT/$1; shift
  stamp=$(cat "$@" | sha256sum | cut -c1-16)
  [ "$(cat "$dir/.stamp" 2> /dev/null)" != "$stamp" ]
}

npm_part() {
  local name=$1 from=$ROOT/tests/kit/$1 dir=$WEIR_KIT/$1
  part_is_new "$name" "$from/package.json" "$from/package-lock.json" || return 0
  say "installing $name"
  rm -rf "$dir"; mkdir -p "$dir"
  cp "$from/package.json" "$from/package-lock.json" "$dir/"
  (cd "$dir" && retry npm ci --ignore-scripts --no-audit --no-fund --loglevel=error > /dev/null)
  echo "$stamp" > "$dir/.stamp"
}

venv_part() {
  local name=$1 list=$ROOT/tests/kit/$2 dir=$WEIR_KIT/$1
  part_is_new "$name" "$list" || return 0
  say "installing python packages ($name)"
  rm -rf "$dir"; python3 -m venv "$dir"
  retry "$dir/bin/pip" install -q --disable-pip-version-check --no-deps -r "$list"
  echo "$stamp" > "$dir/.stamp"
}

# The source archive of the Python SDK carries its own conformance server; the wheel does not.
everything_py() {
  local version dir=$WEIR_KIT/everything-py
  version=$(sed -n 's/^mcp==//p' "$ROOT/tests/kit/py2.txt")
  part_is_new everything-py "$ROOT/tests/kit/py2.txt" || return 0
  say "unpacking the Python SDK's everything-server $version"
  rm -rf "$dir"; mkdir -p "$dir"
  (cd "$dir" && retry "$WEIR_KIT/py/bin/pip" download -q --disable-pip-version-check --no-deps \
    --no-binary mcp "mcp==$version" 2> pip.log || [ -f "mcp-$version.tar.gz" ] || { cat pip.log >&2; exit 1; }
  tar xzf "mcp-$version.tar.gz" --strip-components=4 "mcp-$version/examples/servers/everything-server"
  rm -f "mcp-$version.tar.gz" pip.log)
  echo "$stamp" > "$dir/.stamp"
}

# Tools are built without optimisation: they start once and compile in a third of the time.
cargo_tool() {
  say "building $1 $2 (once)"
  (cd "$WEIR_CACHE" && CARGO_TARGET_DIR=$WEIR_CACHE/tools/target cargo install --quiet --locked --debug \
    --root "$WEIR_CACHE/tools" --version "$2" "$1")
  rm -rf "$WEIR_CACHE/tools/target"
}

# Registries have bad moments.
retry() { "$@" || { say "trying again: $*"; "$@"; } || "$@"; }

main
