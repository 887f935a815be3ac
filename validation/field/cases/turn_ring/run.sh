#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../harness/profile.sh turn_ring ./prog 7
