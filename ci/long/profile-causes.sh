#!/usr/bin/env bash
# Checks that profiles name the right holder and the right cause, in programs built for each cause
# and language; that programs without waits for locks get that answer; and that the busy allocator
# of a game engine is comfortable. About 30 minutes, on a machine with nothing else to do.
#
# usage: profile-causes.sh [--runs N] [--seconds D] [--only TEXT]
set -euo pipefail
cd "$(dirname "$0")/../.."
source ci/long/profile-programs.sh

failed=0
for check in causes not-locks allocator; do
    echo "== $check"
    "$programs/profile-check" "$check" "$@" || failed=1
done
exit "$failed"
