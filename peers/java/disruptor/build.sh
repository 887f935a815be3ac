#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
NAME=java-disruptor GROUP=Disruptors
source "$here/../program.sh"
