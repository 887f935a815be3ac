#!/usr/bin/env bash
# Runs the lints, with warnings denied.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo clippy --workspace --all-targets --quiet -- -D warnings
