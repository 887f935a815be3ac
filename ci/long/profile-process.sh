#!/usr/bin/env bash
# Observes a thousand programs whose threads, mappings and images come and go, each killed at a
# random instant. Prints what was seen of them, and the cost of examining a thread.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo test --release -p threadtoll-stacks --lib process::tests -- --ignored --nocapture --test-threads=1
