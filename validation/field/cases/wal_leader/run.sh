#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../harness/profile.sh wal_leader ./prog 7
