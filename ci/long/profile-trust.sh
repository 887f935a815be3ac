#!/usr/bin/env bash
# Kills, stops and replaces programs, tells them to exit, and lets them unmap their locks, at
# random instants while they are profiled, 1,000 times. The profiler must end in time and in
# order, print no control character, and leave the program alone. Then traces the system calls of
# one profiler: none may write to the program, stop or trace it. About ten minutes.
#
# usage: profile-trust.sh [--runs N] [--seed N] [--only TEXT]
set -euo pipefail
cd "$(dirname "$0")/../.."
source ci/long/profile-programs.sh

failed=0
"$programs/profile-check" trust "$@" || failed=1

if ! command -v strace >/dev/null; then
    echo "profile-trust.sh: system calls are not traced, because no strace is installed"
    exit "$failed"
fi
work=$(mktemp -d)
"$programs/chaos-c" >"$work/target" &
target=$!
trap 'kill "$target"; rm -rf "$work"' EXIT
calls=ptrace,process_vm_writev,pidfd_send_signal,kill,tkill,tgkill,openat,open
strace -f -o "$work/calls" -e trace="$calls" \
    "$THREADTOLL" profile --seconds 2s --json --out "$work/profile.jsonl" -p "$target" \
    >"$work/profile"
if grep -E '^[0-9]+ +(ptrace|process_vm_writev|t?g?kill|pidfd_send_signal)\(' "$work/calls"; then
    echo "profile-trust.sh: the profiler did more than look" >&2
    failed=1
fi
if grep -E "\"/proc/($target|[0-9]+/task)/[^\"]*\", [^)]*O_(WRONLY|RDWR)" "$work/calls"; then
    echo "profile-trust.sh: the profiler opened a file of the program for writing" >&2
    failed=1
fi
echo "$(wc -l <"$work/calls") system calls traced"
exit "$failed"
