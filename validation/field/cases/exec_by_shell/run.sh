#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../harness/profile.sh --launch exec_by_shell sh -c "sleep 0.3; exec ./prog 5"
