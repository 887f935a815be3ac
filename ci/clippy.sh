#!/usr/bin/env bash
# Lints, each warning an error.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo clippy --workspace --all-targets --quiet -- -D warnings
