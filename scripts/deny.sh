#!/usr/bin/env bash
# Dependency rules of deny.toml. The advisory database lives on GitHub; where that cannot be reached, the copy from
# the last time is used, and without one the other three checks still decide.
set -uo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"
cargo deny --all-features check --hide-inclusion-graph bans licenses sources || exit 1
db=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/advisory-dbs/*/ 2> /dev/null | head -1)
if timeout 20 git ls-remote -q https://github.com/rustsec/advisory-db HEAD > /dev/null 2>&1; then
  exec cargo deny --all-features check --hide-inclusion-graph advisories
elif [ -n "$db" ]; then
  echo "advisories: github.com is out of reach, using the copy at hand" >&2
  exec cargo deny --offline --all-features check --hide-inclusion-graph advisories
else
  echo "advisories: NOT checked, github.com is out of reach and there is no copy of the database" >&2
fi
