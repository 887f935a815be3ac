#!/usr/bin/env bash
# Runs the models of crates/threadtoll under loom, with up to LOOM_MAX_PREEMPTIONS preemptions
# (default 2), and checks that each model notices its planted faults. See docs/dev/verification.md.
# The planted faults of three models are left to ci/long/loom.sh: those of two take longer than all
# else together, and one fault of the third needs three preemptions.
# First it checks that a program built with `--cfg loom` sees the same public interface.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

# These tests call every public function.
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$target/users-loom" cargo check --quiet -p threadtoll --test queues --test locks

# loom itself needs `--cfg loom`.
export RUSTFLAGS="--cfg loom --cfg threadtoll_loom" CARGO_TARGET_DIR="$target/loom"
# Debug assertions fail where a rule is broken, not later.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_DEBUG=0
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-2}"
# No code bypasses `sync`, where loom would not see it. (In other builds, its types are those of
# std.)
CLIPPY_CONF_DIR=$PWD/ci/modelled cargo clippy --release --quiet -p threadtoll --lib \
    -- --allow clippy::all --deny clippy::disallowed_types
cargo test --release --quiet -p threadtoll --lib models:: -- \
    --skip bounded_two::notices --skip bounded_two_timeout::notices \
    --skip lock::passed_over::notices
