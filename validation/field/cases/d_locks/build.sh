#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
ldc2 -O2 -g -of=prog main.d
