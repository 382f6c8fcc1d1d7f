#!/bin/sh
# Runs fuzz targets for a while, one after the other: fuzz/run.sh [seconds, default 600] [target...]
# Without a name: those of the pure rooms. plugin_abi and plugin_load are built apart and take ten minutes to build.
# Needs cargo-fuzz on the PATH (cargo install cargo-fuzz) and a C++ compiler. See README.md.
set -eu
cd "$(dirname "$0")"
seconds="${1:-600}"
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- json_decode json_stream reserialise sse_decode scan stream rule_load
for target in "$@"; do
    dir=. len=4096
    case "$target" in
        sse_decode) dict=-dict=sse.dict ;;
        scan | stream) dict=-dict=scan.dict ;;
        rule_load) dict=-dict=rule.dict ;;
        plugin_abi) dir=plugin-host len=1024 dict= ;;
        plugin_load) dir=plugin-host len=16384 dict= ;;
        *) dict=-dict=json.dict ;;
    esac
    mkdir -p "$dir/corpus/$target"
    echo "== $target for $seconds s"
    # shellcheck disable=SC2086
    nice cargo fuzz run --fuzz-dir "$dir" --sanitizer none "$target" "$dir/corpus/$target" "$dir/seeds/$target" -- \
        $dict -max_len="$len" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
done
