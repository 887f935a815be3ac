#!/usr/bin/env bash
# Unwinds sleeping threads of programs in C, C++ and Rust, with and without optimisation and frame
# pointers, dynamic and static, and compares with the call chains that the programs write down.
# Prints the shares of stacks that came out right, cut short, wrong and inferred, and the cost.
# Finds static locks of such programs by their types, too.
# ONLY_STACKS=TEXT selects builds whose name contains TEXT; VERBOSE_STACKS=1 shows the wrong ones.
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in cc c++; do
    command -v "$tool" > /dev/null || { echo "profile-stacks.sh: $tool is missing" >&2; exit 1; }
done
cargo test -p threadtoll-stacks --test stacks -- --include-ignored --nocapture \
    --test-threads 1
cargo test -p threadtoll-profile --test static_locks -- --include-ignored
