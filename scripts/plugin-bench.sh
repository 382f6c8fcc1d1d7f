#!/usr/bin/env bash
# What a policy plugin costs per message, in Rust and in JavaScript: a table in Markdown (docs/plugin-cost.md).
# ONLY=WORD runs the rows that hold the word.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"
scripts/setup.sh plugins
use_node
export PATH="$WEIR_KIT/componentize/node_modules/.bin:$PATH"
cargo build --release --workspace --bin weir --example cost
weir=$TARGET/release/weir
CARGO_TARGET_DIR=$TARGET/plugins "$weir" policy build policies/plugins/yardstick > /dev/null
"$weir" policy build policies/javascript/yardstick > /dev/null
echo "Commit $(git rev-parse --short HEAD), $(date -u +%F), $(nproc) processors of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), Linux $(uname -r)."
echo
exec "$TARGET/release/examples/cost" Rust=policies/plugins/yardstick/yardstick.wasm JavaScript=policies/javascript/yardstick/yardstick.wasm
