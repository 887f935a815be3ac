#!/usr/bin/env bash
# Runs the tests, exactly as the README says.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --workspace
