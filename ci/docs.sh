#!/usr/bin/env bash
# Documentation, each warning an error.
set -euo pipefail
cd "$(dirname "$0")/.."
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
