#!/usr/bin/env bash
# Runs under Miri the examples of the documentation of crates/threadtoll, and the tests of one-shots
# and owners. Needs a nightly toolchain with Miri and the library's source (TOOLCHAIN, default "nightly").
set -euo pipefail
cd "$(dirname "$0")/../.."
toolchain=${TOOLCHAIN:-nightly}
if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
    echo "miri.sh: skipped, because Miri is missing (rustup component add miri rust-src --toolchain $toolchain)"
    exit 0
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri" PROPTEST_CASES="${PROPTEST_CASES:-4}"
cargo "+$toolchain" miri test --quiet -p threadtoll --doc
cargo "+$toolchain" miri test --quiet -p threadtoll --test queues -- oneshot owned::
