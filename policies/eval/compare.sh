#!/usr/bin/env bash
# Weir and other scanners on the same rows; prints a table and writes it into docs/detection.md.
#
#   MARK=compare HALF= policies/eval/compare.sh ROWS.jsonl[.gz]...
#
# MARK names the place in the page, HALF the half of the rows that counts (all).
#
# Rows with a `source` that is an engine's own examples are left out for that engine, and once for all engines together.
# Needs: gitleaks (Debian: apt install gitleaks), and in the Python of $PYTHON: kingfisher-bin, presidio-analyzer, spacy.
# WEIR_SCAN is the command that scans lines of JSON; by default the built program's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}
read -r -a weir <<< "${WEIR_SCAN:-$root/target/release/weir scan --jsonl}"
figures=$(mktemp)
trap 'rm -f "$figures"' EXIT
[ $# -gt 0 ] || { sed -n '2,11p' "$0"; exit 2; }

score() { # label, sources left out, kinds, command
  local label=$1 out=$2 kinds=$3
  shift 3
  "$python" "$here/score.py" "${rows[@]}" --half "${HALF:-}" --label "$label" --leave-out "$out" --kinds "$kinds" --json "$figures" -- "$@"
}
# Whether any row is from one of these sources: if none is, leaving them out is the same as not.
has() {
  "$python" -c 'import sys; sys.path.insert(0, sys.argv[1]); import score
sys.exit(not any(r["source"] in sys.argv[2].split(",") for r in score.read(sys.argv[3:])))' "$here" "$1" "${rows[@]}"
}
against() { # label, the engine's own sources, kinds, engine
  local part="all rows"
  if has "$2"; then
    part="without its own rows"
    score "weir | without the rows of $1" "$2" "$3" "${weir[@]}"
  fi
  score "$1 | $part" "$2" "$3" "$python" "$here/engines.py" "$4"
}
rows=("$@")
score "weir | all rows" "" secret,pii,injection "${weir[@]}"
against "gitleaks (decoding to depth 3)" gitleaks,betterleaks secret gitleaks
against "Kingfisher" kingfisher,betterleaks secret kingfisher
against "Presidio (patterns, threshold 0.4)" presidio pii presidio
own=gitleaks,betterleaks,kingfisher,noseyparker,detect-secrets
if has "$own"; then
  score "weir | without any engine's own rows" "$own" secret "${weir[@]}"
  score "gitleaks (decoding to depth 3) | without any engine's own rows" "$own" secret "$python" "$here/engines.py" gitleaks
  score "Kingfisher | without any engine's own rows" "$own" secret "$python" "$here/engines.py" kingfisher
fi
"$python" "$here/table.py" "$figures" "$root/docs/detection.md" "${MARK:-compare}"
