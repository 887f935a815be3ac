#!/usr/bin/env bash
# Runs the models of crates/threadtoll under shuttle: random schedules of the models that loom
# explores exhaustively, and of longer ones.
#
# usage: shuttle.sh [MODEL...]      only tests whose names contain one of these (default: all)
#
# SHUTTLE_SCHEDULES=N tries N schedules of each kind (default 10000).
set -euo pipefail
cd "$(dirname "$0")/../.."
export RUSTFLAGS="--cfg threadtoll_shuttle" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/shuttle"
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_DEBUG=0
export SHUTTLE_SCHEDULES="${SHUTTLE_SCHEDULES:-10000}"
cargo test --release -p threadtoll --lib -- "${@:-models::}" --nocapture
