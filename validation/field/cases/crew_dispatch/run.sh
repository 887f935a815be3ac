#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../harness/profile.sh crew_dispatch java -cp . Main 7
