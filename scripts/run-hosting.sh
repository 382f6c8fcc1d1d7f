# Sourced by run.sh: the part of `make run` that hosts a server in a gVisor sandbox.
hosting=yes why='' runner='' KEY=''
TENANT=demo SERVER=my-server
RUNNER_STATE=$ROOT/weir-data/runner
# Always the same for one checkout, so that what a run left that was killed is found by the next.
RUNNER_RUN=/run/weir-make-run-$(printf %s "$ROOT" | cksum | cut -d' ' -f1)
runner_log=

# Clears $hosting and says why where this machine cannot host.
why_not_hosting() {
  if [ "$(uname -s)" != Linux ]; then not_hosted "It needs Linux."
  elif [ "$(id -u)" != 0 ]; then not_hosted "It needs root: run \`make run\` as root to see them."
  elif ! scripts/setup.sh runner; then not_hosted "gVisor and its tools cannot be installed; the reason stands above."
  fi
}

why_not_sandboxes() {
  "$TARGET/release/weir-runner" doctor --state "$RUNNER_STATE" > "$work/doctor" && return 0
  cat "$work/doctor" >&2
  not_hosted "weir-runner finds that sandboxes cannot run here; its report stands above."
}

not_hosted() {
  hosting='' why=$1
  say "LEFT OUT: servers hosted in sandboxes. $why"
}

# The configuration of a hub with one fronted server, and one that is deployed.
show_all() {
  start_runner
  hub_config > "$work/weir.yaml"
  say "starting: weir serve"
  start serve -c "$work/weir.yaml"
  unset WEIR_ADMIN_TOKEN; export WEIR_ADMIN_TOKEN_FILE=$DATA/admin.token
  WEIR_API=$(sed -n 's/^weir: hosting: admin API on //p' "$log"); export WEIR_API
  say "1. in front of a server: node .../server-everything stdio"
  show_block "$URL/servers/everything/mcp" echo message 'Echo: hello'
  say "2. hosting a server: weir server deploy examples/hosted-server"
  hosted=$("$TARGET/release/weir" server deploy examples/hosted-server --id "$SERVER" --tenant "$TENANT")
  [ "$hosted" = "$URL/sandbox/$SERVER/mcp" ] || die "it was deployed to $hosted"
  show_block "$hosted" get_data query 'Result for: hello'
  show_refused_egress
  say "to use the hosted server from a client (the key is of this run: export WEIR_API_KEY=$KEY)"
  "$TARGET/release/weir" client-config --url "$hosted" --key-env WEIR_API_KEY
  say "url: $hosted"
  say "key: $KEY"
}

start_runner() {
  local program=$TARGET/release/weir-runner
  runner_log=$work/runner.log
  mkdir -p "$RUNNER_STATE" "$WEIR_CACHE/rootfs"
  ln -sfn "$WEIR_CACHE/rootfs" "$RUNNER_STATE/rootfs"
  # What an earlier run left that was killed. It is refused while another one runs here.
  [ ! -e "$RUNNER_RUN" ] || purge || { cat "$work/purge" >&2; die "what an earlier \`make run\` left cannot be ended; does another one run in this folder?"; }
  say "root file systems for Python and Node (the first time takes a minute or two each)"
  "$program" --state "$WEIR_CACHE" rootfs build
  say "starting: weir-runner serve"
  : > "$runner_log"
  "$program" --state "$RUNNER_STATE" --run "$RUNNER_RUN" serve 2> "$runner_log" & runner=$!
  for _ in $(seq 300); do
    ! grep -q 'weir-runner is ready' "$runner_log" || return 0
    kill -0 "$runner" 2> /dev/null || break
    sleep 0.1
  done
  cat "$runner_log" >&2
  die "weir-runner is not ready"
}

hub_config() {
  local hash quoted
  KEY=$("$TARGET/release/weir" key new --id make-run --tenant "$TENANT" 2> "$work/key")
  hash=$(sed -n 's/^ *hash: *//p' "$work/key")
  quoted=$(printf ', "%s"' "${EVERYTHING[@]:1}")
  cat << END
listen: 127.0.0.1:$(port_of "${PORT:-}" 8080)
admin_listen: 127.0.0.1:0
data_dir: $DATA
hosting: {runner: $RUNNER_RUN/runner.sock, listen: "127.0.0.1:$(port_of '' 8090)"}
tenants:
  $TENANT:
    keys: [{id: make-run, hash: "$hash"}]
    servers:
      everything: {upstream: {command: ${EVERYTHING[0]}, args: [${quoted#, }]}}
END
}

show_refused_egress() {
  local answer event='' seen=0 last
  # Numbers go up over all runs.
  while last=$(events_after "$seen" | grep -o '"seq":[0-9]*' | tail -1); do seen=${last#*:}; done
  say "the hosted server tries to reach a name that is not on its allowlist"
  answer=$(call fetch '{"url": "https://somewhere.example/"}')
  echo "$answer"
  grep -q 'no connection' <<< "$answer" || die "the way out was open"
  for _ in $(seq 100); do
    event=$(events_after "$seen" | grep '"egress_refused"' | grep -F '"somewhere.example"' | head -1) && break
    sleep 0.1
  done
  [ -n "$event" ] || die "the refusal is not among the server's events"
  echo "$event"
  say "refused, and recorded: GET $WEIR_API/api/v1/servers/$SERVER/events"
}

# One event a line, a thousand at most.
events_after() {
  curl -sS --max-time 10 -H "Authorization: Bearer $(cat "$WEIR_ADMIN_TOKEN_FILE")" "$WEIR_API/api/v1/servers/$SERVER/events?after=$1" |
    sed 's/^\[//; s/\]$//; s/},{/}\n{/g'
}

purge() { "$TARGET/release/weir-runner" --state "$RUNNER_STATE" --run "$RUNNER_RUN" purge > "$work/purge" 2>&1; }

# Sandboxes outlive the runner on purpose; those of a demonstration do not.
stop_hosting() {
  [ -n "$runner" ] || return 0
  end "$runner"
  purge || { cat "$work/purge" >&2; say "sandboxes are left: see $RUNNER_RUN"; return 1; }
  rm -rf --one-file-system "$RUNNER_RUN" || { say "something is left in $RUNNER_RUN"; return 1; }
}
