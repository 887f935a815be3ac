#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
for what in channel mutex; do
    ../../harness/profile.sh "go_standstill_$what" ./prog 7 "$what"
done
