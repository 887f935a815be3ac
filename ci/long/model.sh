#!/usr/bin/env bash
# Compares the simulator of crates/model with closed forms: 50 random cases each, of which at least
# 47 must lie within their own 99% interval. Takes a minute, plus the build.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo test --release -p threadtoll-model -- --ignored --nocapture
