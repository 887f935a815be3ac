#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../common/profile.sh own_spinlock ./prog 7
