#!/usr/bin/env bash
# Run one upstream server in the foreground on loopback.
# usage: serve.sh py|ts|ts-sse|ts-stdio|fastmcp [PORT]
#   py       the Python SDK 2.x everything-server: Streamable HTTP, both eras, 127.0.0.1:PORT/mcp
#   ts       server-everything, Streamable HTTP: handshake era, sessions, resumable; listens on all addresses
#   ts-sse   the same over HTTP+SSE of 2024-11-05 (/sse and /message)
#   ts-stdio the same over stdio
#   fastmcp  examples/python-server under the Python SDK 1.x
set -euo pipefail
H=$(cd "$(dirname "$0")" && pwd)
D=${WEIR_KIT:-${WEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir}/kit}; P=${2:-38100}
export PATH="$D/node22/node_modules/.bin:$PATH"
EV="$D/everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
case $1 in
  py) cd "$D/everything-py"; exec "$D/py/bin/python" -m mcp_everything_server --port "$P" ;;
  ts) PORT=$P exec node "$EV" streamableHttp ;;
  ts-sse) PORT=$P exec node "$EV" sse ;;
  ts-stdio) exec node "$EV" stdio ;;
  fastmcp) PORT=$P exec "$D/pyold/bin/python" "$H/../../examples/python-server/server.py" ;;
  *) echo "unknown server: $1" >&2; exit 2 ;;
esac
