#!/usr/bin/env bash
# Compares our queues with other Rust channels on this machine: latency, throughput, throughput with
# 2 and 4 senders, and the benchmarks of peers/rust/benches. Raw records, tables and page go to the
# given folder (default: a new one in threadtoll-results/). Nothing else should run.
#
# The tables take 5 minutes on a quiet machine and 15 on a noisy one, the benchmarks 7, and the
# build a few more.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-threadtoll-results/queues-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
mkdir -p "$folder"
cargo build --release --quiet
threadtoll=target/release/threadtoll
"$threadtoll" queue ask-reply --out "$folder/ask-reply.jsonl" >"$folder/ask-reply.txt"
"$threadtoll" queue stream --out "$folder/stream.jsonl" >"$folder/stream.txt"
"$threadtoll" queue stream --senders 2,4 --batch 1 --out "$folder/senders.jsonl" >"$folder/senders.txt"
"$threadtoll" report "$folder"/*.jsonl --html "$folder/queues.html"
# For docs/results.
mkdir -p "$folder/folded"
for raw in "$folder"/*.jsonl; do
    "$threadtoll" report "$raw" --fold "$folder/folded/${raw##*/}.gz" --without-histograms
done
gzip -9 --force "$folder"/*.jsonl
cargo bench --quiet -p threadtoll --bench bounds >"$folder/bounds.txt"
cargo bench --quiet -p threadtoll --bench depth >"$folder/depth.txt"
cargo bench --quiet -p threadtoll --bench idle >"$folder/idle.txt"
cargo bench --quiet -p threadtoll --bench lines >"$folder/lines.txt"
for bench in open_loop fleet ceiling birth request sleep; do
    cargo bench --quiet -p threadtoll-peers-rust --bench "$bench" -- --seconds 60 \
        >"$folder/$bench.txt"
done
cat "$folder"/*.txt
echo "kept in $folder"
