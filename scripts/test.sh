#!/usr/bin/env bash
# Everything that has to hold before a change is taken. Goes on after a failed step; the last line sums up all of them.
# STEPS='fmt clippy' picks some. TESTS='-p weir-tests' narrows the test step.
set -uo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"
STEPS=${STEPS:-setup fmt clippy build test engines plugins doc deny}
LOG=$(mktemp -d); trap 'rm -rf "$LOG"' EXIT
passed=0 failed=0 report=()
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

main() {
  for s in $STEPS; do "step_$s"; done
  echo
  printf '%s\n' "${report[@]}"
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}

step_setup() {
  say "set-up"
  scripts/setup.sh test || { report+=("set-up: FAILED"); failed=$((failed + 1)); echo "$passed passed, $failed failed"; exit 1; }
}
step_fmt() { one fmt cargo fmt --all --check; }
step_clippy() { one clippy cargo clippy --release --workspace --all-targets --quiet -- -D warnings; }
# The whole workspace, as in `make run`: for one package the large dependencies would be compiled again, for other features.
step_build() { one build cargo build --release --workspace --bins --tests; }
# The shipped plugins and the SDK are workspaces of their own; their recorded cases and examples run natively.
step_plugins() {
  one plugins env CARGO_TARGET_DIR="$TARGET/plugins" cargo test --quiet --manifest-path policies/plugins/Cargo.toml
  one "plugin SDK" env CARGO_TARGET_DIR="$TARGET/plugins" cargo test --quiet --manifest-path dlp-sdk/Cargo.toml --features testing
}
step_deny() { one deny scripts/deny.sh; }

# What needs the kit of other people's programs fails without it; by hand (cargo test) it is skipped with a word.
step_test() {
  say "tests"
  local t0=$SECONDS out=$LOG/test rc
  # shellcheck disable=SC2086
  WEIR_KIT_REQUIRED=1 WEIR_BIN=$TARGET/release/weir cargo nextest run --release ${TESTS:---workspace} --no-fail-fast 2>&1 | tee "$out"
  rc=${PIPESTATUS[0]}
  local p f
  p=$(summary "$out" passed) f=$(($(summary "$out" failed) + $(summary "$out" 'timed out') + $(summary "$out" 'exec failed')))
  [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1 # it did not compile
  tally tests "$p" "$f" $((SECONDS - t0))
}

# The optional engine needs a system library, so it is built apart from the rest.
step_engines() {
  one "engines agree" cargo nextest run --release -p dlp-scan --features vectorscan --lib --test engines --cargo-quiet --no-fail-fast \
    -E 'binary(engines) or test(gate)'
}

step_doc() {
  say "documentation examples"
  local t0=$SECONDS out=$LOG/doc rc p f
  cargo test --release --workspace --doc 2>&1 | tee "$out"
  rc=${PIPESTATUS[0]}
  p=$(doc_sum "$out" passed) f=$(doc_sum "$out" failed)
  [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
  tally "doc examples" "$p" "$f" $((SECONDS - t0))
}

# one NAME COMMAND...: a step that passes or fails as one.
one() {
  local name=$1 t0=$SECONDS; shift
  say "$name"
  if "$@"; then tally "$name" 1 0 $((SECONDS - t0)); else tally "$name" 0 1 $((SECONDS - t0)); fi
}

tally() {
  passed=$((passed + $2)) failed=$((failed + $3))
  report+=("$(printf '%-14s %5d passed %3d failed %5d s' "$1" "$2" "$3" "$4")")
}

# "Summary [  1.2s] 40 tests run: 38 passed (1 slow), 1 failed, 1 timed out, 0 skipped"
summary() { sed 's/\x1b\[[0-9;]*m//g' "$1" | sed -n 's/^ *Summary.*tests\? run: //p' | tail -1 | grep -oE "[0-9]+ $2" | grep -oE '^[0-9]+' || echo 0; }
# "test result: ok. 3 passed; 0 failed; ..."
doc_sum() { sed 's/\x1b\[[0-9;]*m//g' "$1" | grep -oE "^test result: .*" | grep -oE "[0-9]+ $2" | awk '{ n += $1 } END { print n + 0 }'; }

main
