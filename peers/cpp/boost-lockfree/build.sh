#!/usr/bin/env bash
# Builds the adapter of Boost.Lockfree.
. "$(dirname "$0")/../../adapter.sh"
needs boost/lockfree/queue.hpp libboost-dev
compile
