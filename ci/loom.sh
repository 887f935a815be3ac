#!/usr/bin/env bash
# The models of crates/threadtoll under loom: every execution with up to LOOM_MAX_PREEMPTIONS
# preemptions (default 2), and that each model notices what it must. docs/verification.md explains
# them. First: a program built with `--cfg loom` sees the same public interface.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

# The tests name every verb.
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$target/users-loom" cargo check --quiet -p threadtoll --test queues

# loom itself asks for `--cfg loom`.
export RUSTFLAGS="--cfg loom --cfg threadtoll_loom" CARGO_TARGET_DIR="$target/loom"
# Debug assertions tell of a broken rule where it is broken.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_DEBUG=0
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-2}"
# Nothing goes past `sync`, where loom would not see it. In other builds its types are those of std.
CLIPPY_CONF_DIR=$PWD/ci/modelled cargo clippy --release --quiet -p threadtoll --lib \
    -- --allow clippy::all --deny clippy::disallowed_types
cargo test --release --quiet -p threadtoll --lib models::
