#!/usr/bin/env bash
# `make run`: the whole of Weir on this machine. A server in front of which it stands, a server that it hosts in gVisor,
# calls of both, a block, a refused way out; then it serves until Ctrl-C. Hosting needs Linux and root: elsewhere that is
# said, and only the first part is shown.
#
#   ONCE=1   stop after the demonstration, exit 0 only when all that it showed was as it should be
#   PORT=N   where to listen (default 8080, or a free port when that is taken)
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"
. scripts/run-hosting.sh

# Looks like a GitHub token down to its check digits, and is none. In two parts, so that no scanner stumbles over it.
TOKEN="ghp_Q7dR2mXk9LwZtV4c""NpB1sYhE6uJgA34eUZEa"
DATA=$ROOT/weir-data

main() {
  scripts/setup.sh run
  use_node
  work=$(mktemp -d); log=$work/weir.log; trap stop EXIT; trap 'exit 130' INT; trap 'exit 143' TERM
  why_not_hosting
  say "building (the first time takes some minutes)"
  cargo build --release --workspace --bin weir ${hosting:+--bin weir-runner}
  [ -z "$hosting" ] || why_not_sandboxes
  if [ -n "$hosting" ]; then show_all; else show_proxy; fi
  if [ -n "${ONCE:-}" ]; then say "done (ONCE is set)${hosting:+; all of it was as it should be}"; exit 0; fi
  say "serving $URL until Ctrl-C; the audit log is in weir-data/"
  tail -q -n 0 -f "$log" ${hosting:+"$runner_log"} & tailer=$!
  wait -n "$weir" ${runner:+"$runner"}
}

# Without a configuration file: `weir proxy`, one server, no key.
show_proxy() {
  say "starting: weir proxy -- node .../server-everything stdio"
  start proxy --listen "127.0.0.1:$(port_of "${PORT:-}" 8080)" --admin-listen 127.0.0.1:0 --data-dir "$DATA" -- "${EVERYTHING[@]}"
  show_block "$URL" echo message 'Echo: hello'
  say "to use it from a client"
  "$TARGET/release/weir" client-config --url "$URL"
  [ -z "$why" ] || say "NOT SHOWN: servers hosted in sandboxes. $why"
}

EVERYTHING=(node "$WEIR_KIT/everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js" stdio)

# start WORDS...: runs weir in the background and waits until it listens.
start() {
  : > "$log" # it is read at once, and the program may come to it later
  "$TARGET/release/weir" "$@" 2> "$log" & weir=$!
  for _ in $(seq 200); do
    URL=$(sed -n 's/^weir: listening on //p' "$log")
    [ -z "$URL" ] || break
    kill -0 "$weir" 2> /dev/null || { cat "$log" >&2; die "weir did not start"; }
    sleep 0.1
  done
  [ -n "$URL" ] || { cat "$log" >&2; die "weir is not ready after 20 s"; }
  cat "$log" >&2
}

# The port that was asked for, or the usual one, or any when that is taken.
port_of() {
  if [ -n "$1" ]; then echo "$1"; elif (: < "/dev/tcp/127.0.0.1/$2") 2> /dev/null; then echo 0; else echo "$2"; fi
}

# show_block URL TOOL ARGUMENT ANSWER: a session as any client has it. Hello, a call that is fine, the same call with a
# token in it, and once more the first, because a block leaves the session alive.
show_block() {
  local answer
  say "a call that is fine: $2 at $1"
  hello "$1"
  answer=$(call "$2" "{\"$3\": \"hello\"}")
  echo "$answer"
  grep -qF "$4" <<< "$answer" || die "the server did not answer the good call"
  say "the same call with a GitHub token in it"
  answer=$(call "$2" "{\"$3\": \"please keep $TOKEN for me\"}")
  echo "$answer"
  ! grep -q "$TOKEN" <<< "$answer" || die "the token came back"
  grep -q '"isError": *true' <<< "$answer" || die "the call was not blocked"
  call "$2" "{\"$3\": \"hello\"}" | grep -qF "$4" || die "the session did not survive the block"
  say "blocked: it never reached the server, and the session goes on"
}

# hello URL: opens a session there.
hello() {
  endpoint=$1 session=
  post '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"make-run","version":"1"}}}' > /dev/null
  session=$(tr -d '\r' < "$work/headers" | sed -n 's/^mcp-session-id: *//Ip')
  post '{"jsonrpc":"2.0","method":"notifications/initialized"}' > /dev/null
}

call() { post '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"'"$1"'","arguments":'"$2"'}}'; }

post() {
  curl -sS --max-time 90 -D "$work/headers" "$endpoint" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: 2025-11-25' ${session:+-H "Mcp-Session-Id: $session"} ${KEY:+-H "X-API-Key: $KEY"} -d "$1" |
    sed -n 's/^data: {/{/; /^{/p'
}

stop() {
  local rc=$?
  trap '' INT TERM # what is ended here ends once
  [ -z "${tailer:-}" ] || kill "$tailer" 2> /dev/null || true
  end "${weir:-}"
  stop_hosting || rc=1
  rm -rf "$work"
  exit "$rc"
}

# end PID: asks a child of ours to end, and waits until it has.
end() {
  if [ -n "$1" ] && kill "$1" 2> /dev/null; then wait "$1" 2> /dev/null || true; fi
}

main
