#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../common/profile.sh slow_reader ./prog 7
