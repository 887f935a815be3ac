#!/usr/bin/env bash
# Runs a quick survey of this machine, validates each line of its file against the schemas, and
# renders it again.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo build --release --quiet
start=$(date +%s)
cargo run --release --quiet -- survey --quick --out "$work/quick.jsonl"
echo "survey --quick took $(($(date +%s) - start)) s"
cargo run --quiet -p threadtoll-record --example validate -- "$work/quick.jsonl"
cargo run --release --quiet -- report "$work/quick.jsonl" --text --html "$work/again.html" >"$work/again.txt"
test -s "$work/again.txt"
test -s "$work/again.html"
test "$(wc -c <"$work/again.html")" -lt 5000000
test "$(wc -c <"$work/quick.html")" -lt 5000000
