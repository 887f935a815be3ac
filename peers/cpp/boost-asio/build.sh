#!/usr/bin/env bash
# Builds the adapter of Boost.Asio.
. "$(dirname "$0")/../../adapter.sh"
needs boost/asio/post.hpp libboost-dev
# Posting accesses thread-local data.
compile -ftls-model=initial-exec
