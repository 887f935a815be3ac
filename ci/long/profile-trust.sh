#!/usr/bin/env bash
# Kills, stops and replaces programs, asks them to exit, and lets them unmap their locks, at
# random instants while they are profiled, 1,000 times. The profiler must end in time and in
# order, print no control character, and leave the program alone. Then traces the system calls of
# one profiler: none may write to the program, stop or trace it. Last, all readers of what a program
# shows are given 10,000 hostile values each. About a quarter of an hour.
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
strace -f -y -o "$work/calls" -e trace="$calls" \
    "$THREADTOLL" profile --seconds 2s --json --out "$work/profile.jsonl" -p "$target" \
    >"$work/profile"
if grep -E '^[0-9]+ +(ptrace|process_vm_writev|t?g?kill|pidfd_send_signal)\(' "$work/calls"; then
    echo "profile-trust.sh: the profiler did more than look" >&2
    failed=1
fi
# Relative to a folder of /proc, too: -y shows what a descriptor is.
writing='O_(WRONLY|RDWR)'
if grep -E "/proc/[0-9]+[/>\"].*$writing" "$work/calls"; then
    echo "profile-trust.sh: the profiler opened a file of the program for writing" >&2
    failed=1
fi
if ! grep -qE '/proc/[0-9]+>?[/,].*O_RDONLY' "$work/calls"; then
    echo "profile-trust.sh: no file of the program was seen to be opened" >&2
    failed=1
fi
echo "$(wc -l <"$work/calls") system calls traced"
PROPTEST_CASES=10000 timeout 1200 cargo test --release --quiet -p threadtoll-stacks -p threadtoll-judge \
    -p threadtoll-profile -p threadtoll-primitive --lib ||
    failed=1
exit "$failed"
