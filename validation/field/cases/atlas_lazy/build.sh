#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
rustc -O -g --edition 2021 main.rs -o prog
