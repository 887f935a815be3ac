#!/usr/bin/env bash
# Builds the programs that profiles are compared with, and the harness that runs them, into
# `target/programs` of this folder: NAME-c, NAME-c-static, NAME-cpp, NAME-rust, NAME-rust-static,
# and `profile-check`. Needs cc and c++ with headers, and for static ones the libraries' archives.
set -euo pipefail
cd "$(dirname "$0")"
out=target/programs
mkdir -p "$out"

flags=(-O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -pthread)
for source in native/*.c; do
    name=$(basename "$source" .c)
    ${CC:-cc} -std=c17 "${flags[@]}" "$source" -o "$out/$name-c" -lm
    ${CC:-cc} -std=c17 "${flags[@]}" -static "$source" -o "$out/$name-c-static" -lm
    ${CXX:-c++} -std=c++20 "${flags[@]}" -DSTD -x c++ "$source" -o "$out/$name-cpp"
done

cargo build --release --quiet
for binary in shares causes not-locks; do cp "target/release/$binary" "$out/$binary-rust"; done
cp target/release/profile-check target/release/fake-profile "$out/"
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --quiet --target "$host" \
    --bin shares --bin causes
for binary in shares causes; do cp "target/$host/release/$binary" "$out/$binary-rust-static"; done
