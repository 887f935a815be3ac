#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
g++ -O2 -g -std=c++20 -Wall -Wextra -I../../harness main.cpp -o prog -pthread
