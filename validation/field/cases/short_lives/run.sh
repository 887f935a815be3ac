#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
for life in 5 20 50; do
    ../../harness/profile.sh "lives_$life" ./prog 7 "$life"
done
