#!/usr/bin/env bash
# Builds the adapter of atomic_queue.
. "$(dirname "$0")/../../adapter.sh"
needs atomic_queue/atomic_queue.h libatomic-queue-dev
version_of libatomic-queue-dev
compile
