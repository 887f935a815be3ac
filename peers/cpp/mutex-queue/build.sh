#!/usr/bin/env bash
# Builds the adapter of queues with a mutex and a std::queue.
. "$(dirname "$0")/../../adapter.sh"
needs queue g++ "standard library of C++"
compile
