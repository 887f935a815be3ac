#!/usr/bin/env bash
# Compares `threadtoll latency atomic-rmw --line shared --pause off` with the C++ program in this
# folder, on the same two CPUs, in alternating runs. (A machine changes regime for minutes at a
# time, so only runs next to each other can be compared.)
#
#   compare.sh CPU_A CPU_B [PAIRS] [RAW_FILE]
#
# Prints each pair, then the median paired ratio of the programs' medians and means, with a 95%
# interval from resampling pairs. Threadtoll's median is over stretches of some microseconds, the
# C++ program's over blocks of 20 ms, which the scheduler's tick lengthens. Raw pairs go to
# RAW_FILE. Needs g++ (or CXX) and python3 in addition to the Rust toolchain.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cpu_a=${1:?two CPUs are needed} cpu_b=${2:?two CPUs are needed} pairs=${3:-15} raw=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${CXX:-g++}" -O2 -std=c++17 -pthread -o "$work/ping_pong" "$here/ping_pong.cpp"
(cd "$root" && cargo build --release --quiet)
tool=${CARGO_TARGET_DIR:-$root/target}/release/threadtoll

# Median and mean of the C++ program's blocks.
theirs() {
    "$work/ping_pong" "$cpu_a" "$cpu_b" 20 21 | awk '{print $3}' | sort -g |
        awk '{v[NR] = $1; sum += $1} END {print v[int((NR + 1) / 2)], sum / NR}'
}
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
    echo "# pair order threadtoll_p50_ns threadtoll_mean_ns cpp_p50_ns cpp_mean_ns"
    for pair in $(seq 1 "$pairs"); do
        # The programs take turns in running first, so that a drift favours neither.
        if ((pair % 2)); then
            order=threadtoll-first
            o=$(ours)
            t=$(theirs)
        else
            order=cpp-first
            t=$(theirs)
            o=$(ours)
        fi
        echo "$pair $order $o $t"
    done
} | tee "$work/raw"
[ -z "$raw" ] || cp "$work/raw" "$raw"
python3 - "$work/raw" <<'P'
import random, statistics, sys
pairs = [line.split() for line in open(sys.argv[1]) if not line.startswith("#")]
random.seed(1)
for figure, ours, theirs in [("p50", 2, 4), ("mean", 3, 5)]:
    ratios = [float(fields[ours]) / float(fields[theirs]) for fields in pairs]
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(10000))
    print(f"threadtoll / C++, one way {figure}: median {statistics.median(ratios):.3f}, "
          f"95% interval {medians[249]:.3f} to {medians[9749]:.3f}, {len(ratios)} pairs")
P
