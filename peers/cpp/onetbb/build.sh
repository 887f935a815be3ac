#!/usr/bin/env bash
# Builds the adapter of oneTBB.
. "$(dirname "$0")/../../adapter.sh"
needs oneapi/tbb/concurrent_queue.h libtbb-dev
compile -ltbb
