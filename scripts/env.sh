# Sourced by the other scripts: where things live. Installs nothing.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export WEIR_CACHE=${WEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir}
# Third-party servers, clients and the conformance suite.
export WEIR_KIT=${WEIR_KIT:-$WEIR_CACHE/kit}
# On CI the checkout is thrown away after each run and the user's cache is not.
if [ "${CI:-}" = true ]; then export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$WEIR_CACHE/target}; fi
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
export PATH="$WEIR_CACHE/tools/bin:$HOME/.cargo/bin:$PATH"

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
# A Node of the kit's own comes first: the conformance suite needs 22.
use_node() { export PATH="$WEIR_KIT/node22/node_modules/.bin:$PATH"; }
