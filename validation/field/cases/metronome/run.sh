#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../harness/profile.sh metronome ./prog 7
