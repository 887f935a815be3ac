#!/usr/bin/env bash
# Checks that a queue whose receiver takes 20 µs for each message has the delays of M/D/1 on this
# machine, and saturates at the rate of a stream. About a minute, on a machine with nothing else to
# do.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo test --release -p threadtoll-lab --test lab -- --ignored --nocapture served::
