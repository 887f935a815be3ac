#!/usr/bin/env bash
# Runs the models under loom with more preemptions, and prints the number of executions of each.
#
# usage: loom.sh [MODEL...]      only tests whose names contain one of these (default: all)
#
# LOOM_MAX_PREEMPTIONS=N allows N preemptions (default 3).
set -euo pipefail
cd "$(dirname "$0")/../.."
export RUSTFLAGS="--cfg loom --cfg threadtoll_loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_DEBUG=0
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-3}"
cargo test --release -p threadtoll --lib -- "${@:-models::}" --nocapture
