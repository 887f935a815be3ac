#!/usr/bin/env bash
# Runs every contention experiment on this machine: threads × hold share, computing and asleep (up
# to 64 threads), the frequency sweep, McKenney's hold and think times, and the article's pool,
# scaled down and at full size. Raw records, tables and page go to the given folder (default: a new
# one in threadtoll-results/). Takes about 25 minutes; nothing else should run.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-threadtoll-results/locks-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
mkdir -p "$folder"
cargo build --release --quiet
threadtoll=target/release/threadtoll

# take NAME ARGUMENTS...
take() {
    "$threadtoll" contention "${@:2}" --out "$folder/$1.jsonl" >"$folder/$1.txt"
}

take hold-sweep hold-sweep std-mutex parking-lot spin std-rwlock striped/4:std-mutex
take hold-sweep-asleep hold-sweep --work sleep --threads 1,2,4,8,16,32,64 --hold-share 0,5%,10%,20%,50%,80%,100%
take frequency-sweep frequency-sweep std-mutex parking-lot spin kernel-eventfd counter-locked counter-atomic counter-sharded
take hold-think hold-think std-mutex parking-lot-fair kernel-eventfd
take pool pool
# Leaves out one thread, which would take 100 s for the 1,000 tasks, three times.
take pool-full pool parking-lot-fair --hold 5ms --think 95ms --threads 5,10,16,20,25,32
"$threadtoll" report "$folder"/*.jsonl --html "$folder/locks.html"
# For docs/results.
mkdir -p "$folder/folded"
for raw in "$folder"/*.jsonl; do
    "$threadtoll" report "$raw" --fold "$folder/folded/${raw##*/}.gz" --without-histograms
done
gzip -9 --force "$folder"/*.jsonl
cat "$folder"/*.txt
echo "kept in $folder"
