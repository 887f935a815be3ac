#!/usr/bin/env bash
# Measures rows of ours next to their twins, which are the same source compiled and registered as a
# foreign row is, and prints the ratio of each twin to its row, of times or rates, with its paired
# 95% interval. Fails if a twin is missing, shares machine code with its row, or surely
# differs from it by more than 5%, the margin of verdicts. Takes some four minutes once built, and nothing else
# should run. Run it after each change to the loops of `lab`.
#
# usage: twins.sh [--seed N] [--time D] [--keep DIR]
set -euo pipefail
cd "$(dirname "$0")/../.."
options=(--twins --quiet --seed 1)
keep=
while (($#)); do
    case $1 in
        --seed | --time) options+=("$1" "$2") ;;
        --keep) keep=$2 ;;
        *) echo "twins.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
cargo test --release --quiet -p threadtoll-peers-rust --test peers the_twin_of
cargo build --release --quiet
threadtoll=${CARGO_TARGET_DIR:-target}/release/threadtoll
if [[ -z $keep ]]; then
    keep=$(mktemp -d)
    trap 'rm -rf "$keep"' EXIT
fi
mkdir -p "$keep"

measure() {
    local name=$1
    shift
    "$threadtoll" "$@" "${options[@]}" --out "$keep/$name.jsonl" >/dev/null
}

queues=(pipe{,-twin} pipe-bounded{,-twin} funnel{,-twin})
measure stream queue stream "${queues[@]}" --wait spin
measure ask-reply queue ask-reply "${queues[@]}" --wait spin
measure latency latency {atomic-store,futex}{,-twin} --line own --pause off --placement pinned
locks=(std-mutex parking-lot ticket)
for lock in "${locks[@]}"; do
    measure "$lock" contention hold-think "$lock"{,-twin} --threads 2
done

# Of the queues in a stream single messages and batches, of all others one row.
python3 - $((2 * 3 + 3 + 2 + ${#locks[@]})) "$keep"/*.jsonl <<'PYTHON'
import json
import random
import statistics
import sys

MARGIN, PAIRS = 1.05, 21


def name(cell):
    return cell.get("mechanism") or cell.get("queue") or cell.get("lock")


def of_records(records):
    """Ratios that the tool has paired: to the row, or of the row to its twin."""
    for record in records:
        for against in record["against"]:
            own, other = name(record["cell"]), name(against["cell"])
            ratio, bounds = against["ratio"], against["interval95"]
            if other == f"{own}-twin":
                ratio, bounds = 1 / ratio, [1 / bound for bound in reversed(bounds)]
            elif own != f"{other}-twin":
                continue
            of = record["experiment"], min(own, other), record["cell"].get("batch", 1)
            yield of, ratio, bounds, against["blocks"]


def of_locks(plan, blocks):
    """The tool pairs a lock with one thread alone only, so its blocks are paired here."""
    for group, cells in enumerate(plan["groups"]):
        locks = {name(one["cell"]): at for at, one in enumerate(cells) if "lock" in one["cell"]}
        for row in (row for row in locks if f"{row}-twin" in locks):
            own, twin = ({block["seq"]: block["contention"]["work"] / block["elapsed_ns"]
                          for block in blocks if (block["group"], block["cell"]) == (group, at)}
                         for at in (locks[row], locks[f"{row}-twin"]))
            ratios = [twin[seq] / own[seq] for seq in own.keys() & twin.keys()]
            draw = random.Random(1).choices
            draws = (draw(ratios, k=len(ratios)) for _ in range(1000))
            medians = sorted(map(statistics.median, draws))
            of = cells[0]["experiment"], row, 1
            yield of, statistics.median(ratios), (medians[25], medians[974]), len(ratios)


rows = []
for path in sys.argv[2:]:
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    of = lambda kind: [line for line in lines if line["schema"].startswith(f"threadtoll.{kind}/")]
    rows += [*of_records(of("record")), *of_locks(of("plan")[0], of("block"))]
failed = len(rows) != int(sys.argv[1])
if failed:
    print(f"{len(rows)} twins have a ratio, not {sys.argv[1]}")
for (experiment, row, batch), ratio, (low, high), pairs in sorted(rows):
    off = pairs >= PAIRS and (low > MARGIN or high < 1 / MARGIN)
    failed |= off
    label = f"{experiment}: {row}" + (f", batches of {batch}" if batch > 1 else "")
    found = f"{ratio:.3f} ({low:.3f} to {high:.3f}) in {pairs} pairs"
    print(f"{label:45} {found}{': off' if off else ''}")
sys.exit(failed)
PYTHON
