#!/usr/bin/env bash
# Builds the adapter of threadtoll's own pipe.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
out=${PEERS_OUT:-$target/peers}

if ! command -v cargo >/dev/null; then
    echo "not built, because there is no cargo: see https://rustup.rs"
    exit 3
fi
if ! cargo build --manifest-path "$root/Cargo.toml" --release --quiet \
    -p threadtoll-pipe-adapter --target-dir "$target"; then
    echo "not built, because cargo failed"
    exit 1
fi
mkdir -p "$out"
# By rename: a run may have loaded the old one.
cp "$target/release/libthreadtoll_pipe.so" "$out/.threadtoll-pipe.$$"
mv -f "$out/.threadtoll-pipe.$$" "$out/threadtoll-pipe.so"
echo "built"
