#!/usr/bin/env bash
# Make calls with one third-party client, all on one session; one JSON line per call (see clients/common.mjs).
# usage: client.sh NAME URL CALLS ['Header: value']      CALLS: [["tool", {"argument": 1}], ...]
#        client.sh list
set -euo pipefail
H=$(cd "$(dirname "$0")" && pwd)
export WEIR_KIT=${WEIR_KIT:-${WEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir}/kit}; D=$WEIR_KIT
export PATH="$D/node22/node_modules/.bin:$PATH"
[ "$1" != list ] || { sed -n 's|^  \([a-z0-9-]*\)).*|\1|p' "$0"; exit 0; }
NAME=$1 URL=$2 CALLS=$3; shift 3
case $NAME in
  ts1) exec node "$H/clients/ts1.mjs" http "$URL" "$CALLS" "$@" ;;
  ts1-sse) exec node "$H/clients/ts1.mjs" sse "$URL" "$CALLS" "$@" ;;
  ts2-legacy) exec node "$H/clients/ts2.mjs" legacy "$URL" "$CALLS" "$@" ;;
  ts2-auto) exec node "$H/clients/ts2.mjs" auto "$URL" "$CALLS" "$@" ;;
  ts2-modern) exec node "$H/clients/ts2.mjs" modern "$URL" "$CALLS" "$@" ;;
  py1) exec "$D/pyold/bin/python" "$H/clients/py1.py" http "$URL" "$CALLS" "$@" ;;
  py1-sse) exec "$D/pyold/bin/python" "$H/clients/py1.py" sse "$URL" "$CALLS" "$@" ;;
  py2-legacy) exec "$D/py/bin/python" "$H/clients/py2.py" legacy "$URL" "$CALLS" "$@" ;;
  py2-auto) exec "$D/py/bin/python" "$H/clients/py2.py" auto "$URL" "$CALLS" "$@" ;;
  py2-modern) exec "$D/py/bin/python" "$H/clients/py2.py" 2026-07-28 "$URL" "$CALLS" "$@" ;;
  inspector-legacy) exec python3 "$H/clients/inspector.py" http legacy "$URL" "$CALLS" "$@" ;;
  inspector-modern) exec python3 "$H/clients/inspector.py" http modern "$URL" "$CALLS" "$@" ;;
  inspector-sse) exec python3 "$H/clients/inspector.py" sse legacy "$URL" "$CALLS" "$@" ;;
  mcp-remote) # wants no space after the colon
    exec python3 "$H/clients/bridge.py" "$CALLS" -- node "$D/clients/node_modules/mcp-remote/dist/proxy.js" "$URL" \
      --transport http-only --allow-http ${1:+--header "${1/: /:}"} ;;
  supergateway)
    exec python3 "$H/clients/bridge.py" "$CALLS" -- node "$D/clients/node_modules/supergateway/dist/index.js" \
      --streamableHttp "$URL" ${1:+--header "$1"} --logLevel none ;;
  *) echo "unknown client: $NAME" >&2; exit 2 ;;
esac
