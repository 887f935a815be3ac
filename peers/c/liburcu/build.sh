#!/usr/bin/env bash
# Builds the adapter of liburcu.
. "$(dirname "$0")/../../adapter.sh"
needs urcu/wfcqueue.h liburcu-dev
version_of liburcu-dev
# Each claim accesses thread-local data.
compile -lurcu-common -ftls-model=initial-exec
