#!/usr/bin/env bash
# The models of crates/threadtoll under loom: all that can happen with so many preemptions, and that each model notices what it
# must. docs/verification.md explains them. LOOM_MAX_PREEMPTIONS=N allows N (default 2).
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
# Debug assertions tell of a broken rule where it is broken.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_DEBUG=0
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-2}"
cargo test --release --quiet -p threadtoll --lib models::
