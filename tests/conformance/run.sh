#!/usr/bin/env bash
# Run the official conformance suite against one URL and write one line per check.
# usage: run.sh URL OUT ['Header: value' ...]
#   URL  must say localhost (one scenario insists), e.g. http://localhost:8080/mcp
#   OUT  folder for results; OUT/checks.tsv = set, scenario, check, worst status, repeats
#   SETS='2025-11-25 2026-07-28 old' picks what to run; SCENARIO=name runs one scenario of each set
set -uo pipefail
H=$(cd "$(dirname "$0")" && pwd)
D=${WEIR_KIT:-${WEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir}/kit}
URL=$1; OUT=$2; shift 2
mkdir -p "$OUT"; OUT=$(cd "$OUT" && pwd)
export PATH="$D/node22/node_modules/.bin:$PATH"
ADD_HEADERS=$(python3 -c 'import sys,json;print(json.dumps(dict([x.split(":",1)[0].strip(),x.split(":",1)[1].strip()] for x in sys.argv[1:])))' "$@")
ADD_HEADERS_ORIGIN=$(python3 -c 'import sys,urllib.parse as u;p=u.urlsplit(sys.argv[1]);print(p.scheme+"://"+p.netloc)' "$URL")
export ADD_HEADERS ADD_HEADERS_ORIGIN
one() {
  n=$1; prog=$2; shift 2; rm -rf "${OUT:?}/$n"
  ADD_HEADERS_UNDICI=$prog timeout "${LIMIT:-400}" node --import "$H/add-header.mjs" "$prog" server --url "$URL" "$@" \
    ${SCENARIO:+--scenario "$SCENARIO"} -o "$OUT/$n" > "$OUT/$n.txt" 2>&1
  echo "$n exit=$? $(grep -m1 '^Total' "$OUT/$n.txt" || tail -1 "$OUT/$n.txt" | cut -c1-200)"
}
NEW="$D/conf/node_modules/@modelcontextprotocol/conformance/dist/index.js"
OLD="$D/conf-old/node_modules/@modelcontextprotocol/conformance/dist/index.js"
for s in ${SETS:-2025-11-25 2026-07-28 old}; do
  case $s in
    old) if [ -n "${SCENARIO:-}" ]; then one old "$OLD"; else one old "$OLD" --suite all; fi ;;
    *) if [ -n "${SCENARIO:-}" ]; then one "$s" "$NEW" --spec-version "$s"; else one "$s" "$NEW" --requirements "$s"; fi ;;
  esac
done
python3 "$H/checks.py" collect "$OUT" > "$OUT/checks.tsv"
echo "checks: $(wc -l < "$OUT/checks.tsv")  not passing: $(awk -F'\t' '$4!="SUCCESS"&&$4!="INFO"&&$4!="SKIPPED"' "$OUT/checks.tsv" | wc -l)"
