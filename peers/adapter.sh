# shellcheck shell=bash
# For the build scripts of adapters, which source it. An adapter has the name of its folder and of
# its source. It is compiled if its source, the headers here, the compiler or a flag has changed.
#
#   needs HEADER PACKAGE [LABEL]   ends the script if there is no such header
#   version_of PACKAGE             sets `version` to that of a Debian package, or to "unknown"
#   compile FLAG…                  makes $PEERS_OUT/NAME.so
#
# CC, CXX, CFLAGS and CXXFLAGS are used, and the adapter's description lists the flags.
# PEERS_OUT is target/peers by default, where target may be elsewhere (CARGO_TARGET_DIR).
set -euo pipefail

peers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(cd "$(dirname "$0")" && pwd)
name=$(basename "$folder")
out=${PEERS_OUT:-${CARGO_TARGET_DIR:-$(dirname "$peers")/target}/peers}
version=unknown

case $(basename "$(dirname "$folder")") in
    c)
        source=$folder/$name.c kind=c compiler=${CC:-gcc} package=gcc
        standard=-std=gnu11 extra=${CFLAGS:-}
        ;;
    *)
        source=$folder/$name.cpp kind=c++ compiler=${CXX:-g++} package=g++
        standard=-std=c++17 extra=${CXXFLAGS:-}
        ;;
esac

# Prints what is missing. To peers/build.sh, exit code 3 means that nothing else went wrong.
missing() {
    echo "not built, because there is no $1: apt-get install $2"
    exit 3
}

command -v "$compiler" >/dev/null || missing "$compiler" "$package"

needs() {
    printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" |
        "$compiler" "$standard" -E -x "$kind" - >/dev/null 2>&1 || missing "${3:-$1}" "$2"
}

version_of() {
    version=$(dpkg-query -W -f '${Version}' "$1" 2>/dev/null) || version=unknown
    # 1.0.3+ds-1 is Debian's first package of 1.0.3.
    version=${version%-*}
    version=${version%+ds}
    version=${version%+dfsg}
}

compile() {
    local flags="$standard -O3 -march=native -DNDEBUG -pthread" said flag release command key part
    [ -z "$extra" ] || flags+=" $extra"
    said=$flags
    for flag in "$@"; do
        case $flag in -D* | -l*) ;; *) said+=" $flag" ;; esac
    done
    release=$("$compiler" -dumpfullversion 2>/dev/null || "$compiler" -dumpversion)
    command=(
        # shellcheck disable=SC2206 # words
        "$compiler" $flags -Wall -Wextra -fPIC -shared -fvisibility=hidden
        "-DTT_COMPILER=\"$(basename "$compiler") $release\""
        "-DTT_FLAGS=\"$said\"" "-DTT_LIBRARY_VERSION=\"$version\""
    )
    key=$({
        printf '%s\n' "${command[@]}" "$@"
        cat "$source" "$peers/adapter.h" "$peers/adapter.sh" "$0"
        [ $kind = c ] || cat "$peers/cpp/adapter.hpp"
    } | sha256sum)
    mkdir -p "$out" "$out.build"
    if [ -f "$out/$name.so" ] && [ "$(cat "$out.build/$name.key" 2>/dev/null)" = "$key" ]; then
        echo "up to date"
        return
    fi
    # Symbols that GCC marks unique would be shared by all adapters of a process.
    if [ $kind = c++ ] && "$compiler" -fno-gnu-unique -E -x c++ /dev/null >/dev/null 2>&1; then
        command+=(-fno-gnu-unique)
    fi
    part=$out.build/$name.$$.so
    # shellcheck disable=SC2064 # its value now
    trap "rm -f '$part'" EXIT
    # Libraries come after what uses them.
    if ! "${command[@]}" -o "$part" "$source" "$@"; then
        rm -f "$out/$name.so" "$out.build/$name.key"
        echo "not built, because $compiler failed"
        exit 1
    fi
    mv -f "$part" "$out/$name.so"
    printf '%s\n' "$key" >"$out.build/$name.key"
    echo "built"
}
