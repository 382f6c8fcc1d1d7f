#!/bin/sh
# Runs every fuzz target for a while, one after the other: fuzz/run.sh [seconds, default 600] [target...]
# Needs cargo-fuzz on the PATH (cargo install cargo-fuzz) and a C++ compiler. See README.md.
set -eu
cd "$(dirname "$0")"
seconds="${1:-600}"
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- json_decode reserialise sse_decode scan stream rule_load
for target in "$@"; do
    case "$target" in
        sse_decode) dict=sse.dict ;;
        scan | stream) dict=scan.dict ;;
        rule_load) dict=rule.dict ;;
        *) dict=json.dict ;;
    esac
    mkdir -p "corpus/$target"
    echo "== $target for $seconds s"
    nice cargo fuzz run --sanitizer none "$target" "corpus/$target" "seeds/$target" -- \
        -dict="$dict" -max_len=4096 -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
done
