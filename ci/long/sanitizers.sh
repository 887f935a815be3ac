#!/usr/bin/env bash
# Runs the tests of crates/threadtoll under AddressSanitizer and ThreadSanitizer, after each has
# found the bug planted for it. docs/dev/verification.md names their limits. Needs a nightly
# toolchain (TOOLCHAIN, default "nightly").
set -euo pipefail
cd "$(dirname "$0")/../.."
toolchain=${TOOLCHAIN:-nightly}
host=$(rustc -vV | sed -n 's/^host: //p')
if ! cargo "+$toolchain" --version >/dev/null 2>&1; then
    echo "sanitizers.sh: skipped, because there is no toolchain \"$toolchain\" (rustup toolchain install nightly)"
    exit 0
fi

# under SANITIZER ARGUMENTS...
under() {
    local sanitizer=$1
    shift
    # Naming a target keeps the flags away from build scripts.
    RUSTFLAGS="-Zsanitizer=$sanitizer" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/$sanitizer" PROPTEST_CASES=16 \
        cargo "+$toolchain" test --quiet --target "$host" -p threadtoll "$@"
}

# must_find WHAT SANITIZER [ARGUMENT] TEST: the planted bug is reported by name.
must_find() {
    local what=$1 said
    if said=$(under "$2" "${@:3:$#-3}" --test planted -- --ignored --exact "${@: -1}" --nocapture 2>&1); then
        echo "sanitizers.sh: $2 did not find the planted $what" >&2
        exit 1
    fi
    if ! grep -q "$what" <<<"$said"; then
        echo "$said" >&2
        echo "sanitizers.sh: the planted $what was not what failed" >&2
        exit 1
    fi
    echo "$2 finds a planted $what"
}

export LSAN_OPTIONS="suppressions=$PWD/ci/long/lsan.txt:print_suppressions=0"
must_find heap-use-after-free address use_after_free
must_find "LeakSanitizer: detected memory leaks" address leak
under address --lib --test queues --test locks --test leaving --test allocations --test fork --test sandbox

# The standard library is instrumented too: a program that uses the crate needs no suppressions.
if [[ -d $(rustc "+$toolchain" --print sysroot)/lib/rustlib/src/rust ]]; then
    must_find "data race" thread -Zbuild-std race
    under thread -Zbuild-std --test queues --test locks --test leaving
else
    echo "sanitizers.sh: skipped ThreadSanitizer, which needs the library's source (rustup component add rust-src --toolchain $toolchain)"
fi
