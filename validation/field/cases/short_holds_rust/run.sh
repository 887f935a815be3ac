#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../common/profile.sh short_holds_rust ./prog 7
