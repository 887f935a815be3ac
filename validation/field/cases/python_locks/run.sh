#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
for what in abba semaphore processes children; do
    ../../harness/profile.sh "python_$what" python3 main.py 7 "$what"
done
