#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
NAME=java-sukhovitsky GROUP=Sukhovitsky
source "$here/../program.sh"
