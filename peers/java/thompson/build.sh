#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
NAME=java-thompson GROUP=Thompson
source "$here/../program.sh"
