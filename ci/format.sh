#!/usr/bin/env bash
# Is everything formatted, and nothing too heavy?
set -euo pipefail
cd "$(dirname "$0")/.."
cargo fmt --all --check
ci/weight.sh
