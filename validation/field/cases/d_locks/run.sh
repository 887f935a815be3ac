#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
for what in mutex monitor compute; do
    ../../common/profile.sh "d_$what" ./prog 7 "$what"
done
