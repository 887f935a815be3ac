#!/usr/bin/env bash
# The tests, exactly as the README says.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --workspace
