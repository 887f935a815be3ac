#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../harness/profile.sh --launch msgq_relay ./prog 5
