#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
NAME=d-concurrency
source "$here/../program.sh"
