#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
MALLOC_ARENA_MAX=1 ../../harness/profile.sh new_delete_arena ./prog 7
