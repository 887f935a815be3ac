#!/usr/bin/env bash
# The models of crates/threadtoll under shuttle: random schedules of those that loom tries exhaustively, and of longer ones.
#
# usage: shuttle.sh [MODEL...]      only tests whose names contain one of these (default: all)
#
# SHUTTLE_SCHEDULES=N tries so many of each kind (default 10000).
set -euo pipefail
cd "$(dirname "$0")/../.."
export RUSTFLAGS="--cfg threadtoll_shuttle" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/shuttle"
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_DEBUG=0
export SHUTTLE_SCHEDULES="${SHUTTLE_SCHEDULES:-10000}"
cargo test --release -p threadtoll --lib -- "${@:-models::}" --nocapture
