#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
for what in monitors reentrant park sleepers; do
    ../../harness/profile.sh --after 2 "java_standstill_$what" java -cp . Main 9 "$what"
done
