#!/usr/bin/env bash
# Tests the portable backend on Linux, and type-checks the crate for Windows and macOS if rustup has
# the targets.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
RUSTFLAGS="--cfg threadtoll_portable" CARGO_TARGET_DIR="$target/portable" cargo test --quiet -p threadtoll

for system in x86_64-pc-windows-gnu aarch64-apple-darwin; do
    if [[ -d $(rustc --print sysroot)/lib/rustlib/$system/lib ]]; then
        cargo check --quiet -p threadtoll --lib --tests --target "$system"
    else
        echo "portable.sh: skipped $system, because it is not installed (rustup target add $system)"
    fi
done
