#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
NAME=java-jdk GROUP=JdkQueues
source "$here/../program.sh"
