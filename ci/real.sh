#!/usr/bin/env bash
# The tests that measure the real machine, one at a time. `cargo test` ignores them all but one.
set -euo pipefail
cd "$(dirname "$0")/.."
# The whole workspace, as in test.sh, so that nothing is built with other features.
cargo test --workspace --test command -- --ignored --test-threads 1
