#!/usr/bin/env bash
# What the tests of crates/threadtoll do in seconds, for minutes: 1,000,000,000 messages through a pipe and 200,000,000 through a funnel,
# each counted; millions of sleeps and wake-ups; properties with many more cases; thousands of frozen threads; the parking protocol with
# three messages, state by state. docs/verification.md explains them. About half an hour on two CPUs.
#
# PROPTEST_CASES=N tries each property with N cases (default 2000), THREADTOLL_FREEZES=N freezes so often (default 5000).
set -euo pipefail
cd "$(dirname "$0")/../.."
export PROPTEST_CASES="${PROPTEST_CASES:-2000}" THREADTOLL_FREEZES="${THREADTOLL_FREEZES:-5000}"
cargo test --release -p threadtoll --test queues -- --include-ignored --nocapture --test-threads=2
cargo test --release -p threadtoll --test membarrier -- --ignored --nocapture
for _ in $(seq 20); do
    cargo test --release --quiet -p threadtoll --lib -- litmus --nocapture
done
