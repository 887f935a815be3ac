#!/usr/bin/env bash
# Compares `threadtoll latency atomic-rmw --line shared --pause off` with the C++ program beside this script, on the same
# two CPUs, in alternating runs: the machine's regime changes for minutes at a time, so only neighbours in time compare.
#
#   compare.sh CPU_A CPU_B [PAIRS] [RAW_FILE]
#
# Prints each pair and the median ratio of the medians, with the 95% interval of that median from resampling pairs. Raw
# pairs go to RAW_FILE. Needs g++ (or CXX) and python3 beside the Rust toolchain.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cpu_a=${1:?two CPUs are needed} cpu_b=${2:?two CPUs are needed} pairs=${3:-15} raw=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${CXX:-g++}" -O2 -std=c++17 -pthread -o "$work/ping_pong" "$here/ping_pong.cpp"
(cd "$root" && cargo build --release --quiet)
tool=${CARGO_TARGET_DIR:-$root/target}/release/threadtoll

theirs() { "$work/ping_pong" "$cpu_a" "$cpu_b" 40 21 | awk '{print $3}' | sort -g | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }
ours() {
    "$tool" latency atomic-rmw --line shared --pause off --placement pinned --cpus "$cpu_a,$cpu_b" \
        --time 840ms --json --quiet 2>/dev/null |
        python3 -c '
import json, sys
for line in sys.stdin:
    record = json.loads(line)
    if record["cell"]["mechanism"] == "atomic-rmw":
        print(record["one_way"]["p50"], record["one_way"]["mean"])'
}

{
    echo "# pair order threadtoll_p50_ns threadtoll_mean_ns cpp_p50_ns"
    for pair in $(seq 1 "$pairs"); do
        # Who goes first alternates, so that a drift favours neither.
        if ((pair % 2)); then o=$(ours) t=$(theirs) order=threadtoll-first; else t=$(theirs) o=$(ours) order=cpp-first; fi
        echo "$pair $order $o $t"
    done
} | tee "$work/raw"
[ -z "$raw" ] || cp "$work/raw" "$raw"
python3 - "$work/raw" <<'P'
import random, statistics, sys
ratios = []
for line in open(sys.argv[1]):
    if not line.startswith("#"):
        fields = line.split()
        ratios.append(float(fields[2]) / float(fields[4]))
random.seed(1)
medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(10000))
print(f"threadtoll / C++, one way p50: median {statistics.median(ratios):.3f}, "
      f"95% interval {medians[249]:.3f} to {medians[9749]:.3f}, {len(ratios)} pairs")
P
