#!/usr/bin/env bash
# Measures the cost to a program of being profiled: rounds of a fixed amount of work, in windows with
# the profiler, each between two windows without, with 2, 16, 100 and 2,000 threads. The 95% bound of
# the median ratio must be at most 2% of wall time and of CPU time (3% with 2,000 threads). After 12,
# 24 and 48 windows it ends if that is decided. An hour or two, on a machine with nothing else to do.
#
# usage: profile-cost.sh [--runs N] [--seconds D] [--only 'threads 16']
set -euo pipefail
cd "$(dirname "$0")/../.."
source ci/long/profile-programs.sh

"$programs/profile-check" cost "$@"
