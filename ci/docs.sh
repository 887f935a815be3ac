#!/usr/bin/env bash
# Builds the documentation, with warnings denied.
set -euo pipefail
cd "$(dirname "$0")/.."
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
