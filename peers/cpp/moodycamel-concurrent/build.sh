#!/usr/bin/env bash
# Builds the adapter of moodycamel's concurrentqueue.
. "$(dirname "$0")/../../adapter.sh"
needs concurrentqueue/concurrentqueue.h libconcurrentqueue-dev
version_of libconcurrentqueue-dev
# Tokens are found by thread-local data.
compile -ftls-model=initial-exec
