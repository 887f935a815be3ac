#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
g++ -std=c++20 -O2 -g -Wall -Wextra -I../../harness main.cpp -o prog -pthread
