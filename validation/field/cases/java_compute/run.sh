#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
../../common/profile.sh java_compute java -cp . Main 7
