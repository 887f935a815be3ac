#!/usr/bin/env bash
# Builds adapters with the address and undefined-behaviour sanitizers, and checks each queue of
# each by exercise.cpp.
#
#   peers/check/exercise.sh [PEER…]      all adapters by default; see peers/build.sh
#
# Before that, it sees to it that exercise.cpp finds what is wrong with the adapters of
# crates/lab/tests/adapters.
#
# SANITIZE=thread uses the thread sanitizer, which objects to libraries that order their accesses
# by fences, and SANITIZE=none checks what is in target/peers.
set -euo pipefail
peers=$(cd "$(dirname "$0")/.." && pwd)
sanitize=${SANITIZE:-address,undefined}
[ $# -gt 0 ] || set -- c cpp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(-std=c++17 -O1 -g -Wall -Wextra -pthread)
if [ "$sanitize" != none ]; then
    flags+=("-fsanitize=$sanitize" -fno-sanitize-recover=all)
    export CFLAGS="-O1 -g -fsanitize=$sanitize -fno-sanitize-recover=all" PEERS_OUT=$work/peers
    export CXXFLAGS=$CFLAGS
    # Sizes that are impossible are asked for on purpose.
    export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
fi
"${CXX:-g++}" "${flags[@]}" -o "$work/exercise" "$peers/check/exercise.cpp" -ldl

for source in "$peers"/../crates/lab/tests/adapters/*.c; do
    name=$(basename "$source" .c)
    case $name in
        # What these do is seen from outside, or takes two minutes to find.
        close | exit | flood | fork | hang | orphan) continue ;;
        # These do it as soon as they are loaded, or asked for a queue.
        close-early | exit-early | flood-early | fork-early | hang-early | hang-create) continue ;;
        # One of its queues is unbounded in name only.
        full) continue ;;
    esac
    "${CC:-gcc}" -O2 -fPIC -shared -I "$peers" -o "$work/$name.so" "$source"
    code=0
    "$work/exercise" "$work/$name.so" >"$work/said" 2>&1 || code=$?
    if [ $name = good ] && [ $code != 0 ] || [ $name != good ] && [ $code = 0 ]; then
        cat "$work/said"
        echo "exercise.cpp is wrong about the adapter \`$name\`: exit code $code" >&2
        exit 1
    fi
done

"$peers/build.sh" "$@"
for adapter in "${PEERS_OUT:-${CARGO_TARGET_DIR:-$peers/../target}/peers}"/*.so; do
    "$work/exercise" "$adapter"
done
