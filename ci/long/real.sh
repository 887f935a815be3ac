#!/usr/bin/env bash
# Runs the tests that measure the real machine, one at a time. `cargo test` ignores all but one of
# them. The one that ci/long/sentences.sh runs is not among them.
set -euo pipefail
cd "$(dirname "$0")/../.."
# Same packages as in test.sh, so that nothing is rebuilt with other features.
cargo test --workspace --test command -- --ignored --test-threads 1 --skip truth::
cargo test --workspace --test lab -- --ignored --test-threads 1 strikes:: programs::
cargo test -p threadtoll-lab --lib -- --ignored --nocapture stamps_between_stretches
