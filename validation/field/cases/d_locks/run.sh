#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
for what in mutex monitor compute; do
    ../../harness/profile.sh "d_$what" ./prog 7 "$what"
done
