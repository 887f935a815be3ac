#!/usr/bin/env bash
# Compares profiles with the accounts that programs keep of their own locks: held shares and
# queues of 100 random programs in C, C++ and Rust, predictions against real runs, and 1,000
# threads with 10,000 locks. Prints a table: truth, profile, in its interval or not, off by. About
# 35 minutes, on a machine with nothing else to do.
#
# usage: profile-accuracy.sh [--runs N] [--seconds D] [--seed N] [--only TEXT]
set -euo pipefail
cd "$(dirname "$0")/../.."
source ci/long/profile-programs.sh

failed=0
for check in accuracy prediction scale; do
    echo "== $check"
    "$programs/profile-check" "$check" "$@" || failed=1
done
echo "== accuracy without perf events"
"$programs/profile-check" accuracy --runs 20 --perf no || failed=1
if [[ $(id -u) = 0 ]]; then
    echo "== accuracy as an ordinary user"
    TMPDIR=/tmp setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
        "$programs/profile-check" accuracy --runs 20 || failed=1
fi
exit "$failed"
