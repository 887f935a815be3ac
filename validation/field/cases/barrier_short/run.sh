#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../common/profile.sh barrier_short ./prog 7
