#!/usr/bin/env bash
# Each fuzz target for SECONDS_EACH seconds (default 60).
set -euo pipefail
. "$(dirname "$0")/env.sh"
"$ROOT/scripts/setup.sh" fuzz
exec "$ROOT/fuzz/run.sh" "${SECONDS_EACH:-60}"
