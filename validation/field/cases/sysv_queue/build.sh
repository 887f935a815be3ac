#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
gcc -O2 -g -Wall -Wextra -I../../harness main.c -o prog -pthread
