#!/usr/bin/env bash
# Builds the adapter of moodycamel's readerwriterqueue.
. "$(dirname "$0")/../../adapter.sh"
needs readerwriterqueue/readerwriterqueue.h libreaderwriterqueue-dev
version_of libreaderwriterqueue-dev
compile
