#!/usr/bin/env bash
# The simulator of crates/model against closed forms, 50 random cases for each, of which at least 47 must hold within their own 99% interval.
# About a minute beside the build.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo test --release -p threadtoll-model -- --ignored --nocapture
