#!/usr/bin/env bash
# Builds the peers in other languages into target/peers: NAME.so for an adapter, an executable NAME
# for a program.
#
#   peers/build.sh [PEER…]
#
# Without arguments it builds all that this machine has the tools for, says in a line each what is
# missing and how to get it, and ends with 0. A PEER is a folder (`boost-lockfree`), with or without
# its language (`cpp/boost-lockfree`, `cpp-boost-lockfree`), or a language (`cpp`). If one that is
# named cannot be built, the exit code is 1.
#
# Every folder peers/LANGUAGE/PEER with a file build.sh is a peer. That script can be run alone. It
# says in a line what it has done and ends with 0, with 3 if something is missing on this machine,
# or with another code if it failed.
set -euo pipefail
peers=$(cd "$(dirname "$0")" && pwd)

all=()
for script in "$peers"/*/*/build.sh; do
    peer=${script#"$peers/"}
    [ ! -f "$script" ] || all+=("${peer%/build.sh}")
done

wanted=()
for asked in "$@"; do
    found=no
    for peer in "${all[@]}"; do
        case $peer in
            "$asked" | */"$asked" | "$asked"/*) ;;
            *) [ "${peer/\//-}" = "$asked" ] || continue ;;
        esac
        wanted+=("$peer")
        found=yes
    done
    if [ $found = no ]; then
        echo "there is no peer \`$asked\`; try one of ${all[*]}" >&2
        exit 2
    fi
done
[ $# -gt 0 ] || wanted=("${all[@]}")

failed=0
for peer in "${wanted[@]}"; do
    code=0
    said=$("$peers/$peer/build.sh" 2>&1) || code=$?
    # The output of a successful build is cut to its last line, because warnings are of no use.
    [ $code != 0 ] && [ $code != 3 ] || said=$(tail -n 1 <<<"$said")
    [ -n "$said" ] || said=$([ $code = 0 ] && echo built || echo "not built, exit code $code")
    while IFS= read -r line; do
        # Some build scripts begin lines with the peer's name.
        printf '%s: %s\n' "$peer" "${line#"${peer/\//-}: "}"
    done <<<"$said"
    [ $code = 0 ] || failed=$((failed + 1))
done
[ $# -eq 0 ] || [ $failed = 0 ]
