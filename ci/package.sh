#!/usr/bin/env bash
# Checks that the crate packed by `cargo package` builds and passes its tests on its own. Needs the
# registry or cargo's cache of it.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package-alone
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# `--no-verify`: the packed crate is built and tested below.
cargo package --quiet -p threadtoll --allow-dirty --no-verify --target-dir "$target"
# Packed files are years old, so cargo would take what it built from an earlier package for new.
tar --extract --touch --directory "$work" --file "$(ls -t "$target"/package/threadtoll-*.crate | head -1)"
cd "$work"/threadtoll-*
for file in README.md LICENSE-MIT LICENSE-APACHE; do
    test -s "$file" || { echo "package.sh: $file is not packed" >&2; exit 1; }
done
CARGO_TARGET_DIR=$target cargo test --quiet
