#!/usr/bin/env bash
# `make run`: a real MCP server, Weir in front of it, one request that is blocked; then it serves until Ctrl-C.
#
#   ONCE=1   stop after the demonstration, exit 0 when it showed what it should
#   PORT=N   where to listen (default 8080, or a free port when that is taken)
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"

# Looks like a GitHub token down to its check digits, and is none. In two parts, so that no scanner stumbles over it.
TOKEN="ghp_Q7dR2mXk9LwZtV4c""NpB1sYhE6uJgA34eUZEa"

main() {
  scripts/setup.sh run
  say "building weir (the first time takes some minutes)"
  cargo build --release --workspace --bin weir
  use_node
  work=$(mktemp -d); log=$work/log; trap stop EXIT; trap 'exit 130' INT; trap 'exit 143' TERM
  start
  show_block
  say "to use it from a client"
  "$TARGET/release/weir" client-config --url "$URL"
  if [ -n "${ONCE:-}" ]; then say "done (ONCE is set)"; exit 0; fi
  say "serving $URL until Ctrl-C; the audit log is in weir-data/"
  tail -n 0 -f "$log" & tailer=$!
  wait "$weir"
}

start() {
  local everything=$WEIR_KIT/everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js
  say "starting: weir proxy -- node .../server-everything stdio"
  port=${PORT:-8080}
  if [ -z "${PORT:-}" ] && (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then port=0; fi
  "$TARGET/release/weir" proxy --listen "127.0.0.1:$port" --admin-listen 127.0.0.1:0 --data-dir "$ROOT/weir-data" \
    -- node "$everything" stdio 2> "$log" & weir=$!
  for _ in $(seq 200); do
    URL=$(sed -n 's/^weir: listening on //p' "$log")
    [ -z "$URL" ] || break
    kill -0 "$weir" 2> /dev/null || { cat "$log" >&2; die "weir did not start"; }
    sleep 0.1
  done
  [ -n "$URL" ] || { cat "$log" >&2; die "weir is not ready after 20 s"; }
  cat "$log" >&2
}

# A session as any client has it: hello, a call that is fine, the same call with a token in it.
show_block() {
  say "a call that is fine"
  post '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"make-run","version":"1"}}}' > /dev/null
  session=$(tr -d '\r' < "$work/headers" | sed -n 's/^mcp-session-id: *//Ip')
  post '{"jsonrpc":"2.0","method":"notifications/initialized"}' > /dev/null
  local answer
  answer=$(call 2 "hello")
  echo "$answer"
  grep -q 'Echo: hello' <<< "$answer" || die "the server did not answer the good call"
  say "the same call with a GitHub token in it"
  answer=$(call 3 "please keep $TOKEN for me")
  echo "$answer"
  ! grep -q "$TOKEN" <<< "$answer" || die "the token came back"
  grep -q '"isError": *true' <<< "$answer" || die "the call was not blocked"
  say "blocked: it never reached the server, and the session goes on"
}

call() { post '{"jsonrpc":"2.0","id":'"$1"',"method":"tools/call","params":{"name":"echo","arguments":{"message":"'"$2"'"}}}'; }

post() {
  curl -sS --max-time 60 -D "$work/headers" "$URL" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: 2025-11-25' ${session:+-H "Mcp-Session-Id: $session"} -d "$1" |
    sed -n 's/^data: \({.*\)$/\1/p; /^{/p'
}

stop() {
  local rc=$?
  [ -z "${tailer:-}" ] || kill "$tailer" 2> /dev/null || true
  if [ -n "${weir:-}" ] && kill "$weir" 2> /dev/null; then wait "$weir" 2> /dev/null || true; fi
  rm -rf "$work"
  exit "$rc"
}

main
