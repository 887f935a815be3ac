#!/usr/bin/env bash
# Runs the tests of crates/threadtoll for minutes instead of seconds: 1,000,000,000 messages through
# a pipe, 200,000,000 through a funnel and 1,000,000,000 through a diamond of a ring, each counted;
# millions of sleeps and wake-ups; properties with many more cases; thousands of frozen threads; the
# parking protocol with three messages, state by state; requests sent while their receiver leaves;
# storms of 1,250,000 attempts to lock by each of eight threads. See docs/dev/verification.md. About
# an hour on two CPUs.
#
# PROPTEST_CASES=N tries N cases of each property (default 2000), THREADTOLL_FREEZES=N freezes
# threads N times (default 5000), THREADTOLL_LEAVE_MS=N lets receivers of each kind of queue leave
# for N ms (default 10000), THREADTOLL_TRIES=N tries N times in each thread of a storm (default
# 1250000).
set -euo pipefail
cd "$(dirname "$0")/../.."
export PROPTEST_CASES="${PROPTEST_CASES:-2000}" THREADTOLL_FREEZES="${THREADTOLL_FREEZES:-5000}"
export THREADTOLL_LEAVE_MS="${THREADTOLL_LEAVE_MS:-10000}" THREADTOLL_TRIES="${THREADTOLL_TRIES:-1250000}"
cargo test --release -p threadtoll --test queues -- --include-ignored --nocapture --test-threads=2
cargo test --release -p threadtoll --test locks -- --nocapture --test-threads=1
cargo test --release -p threadtoll --test membarrier -- --ignored --nocapture
cargo test --release -p threadtoll --test leaving -- --nocapture
for _ in $(seq 20); do
    cargo test --release --quiet -p threadtoll --lib -- litmus --nocapture
done
