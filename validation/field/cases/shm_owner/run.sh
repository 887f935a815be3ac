#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
for what in live stopped dead; do
    ../../harness/profile.sh "shm_$what" ./prog 7 "$what"
done
