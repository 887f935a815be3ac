#!/usr/bin/env bash
# Measures a few rows on this machine as it is, then beside a program that computes on one of
# their CPUs for 5 ms out of every 50 ms. Reports for both how many blocks were marked as
# disturbed, and how far marked and unmarked blocks are from their cell's median. On a calm
# machine, under 10% of the blocks must be marked; on the disturbed one, marked blocks must be
# further from the median than the others. Takes about five minutes, with nothing else running.
#
# usage: disturbed.sh [FOLDER]      (default: a new one in threadtoll-results/)
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-threadtoll-results/disturbed-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
mkdir -p "$folder"
cargo build --release --quiet
threadtoll=${CARGO_TARGET_DIR:-target}/release/threadtoll

measure() {
    local state=$1
    "$threadtoll" queue stream pipe --wait spin --batch 1 --quiet \
        --out "$folder/$state-stream.jsonl" >/dev/null
    "$threadtoll" queue ask-reply pipe --wait spin --wait adaptive --quiet \
        --out "$folder/$state-ask-reply.jsonl" >/dev/null
    "$threadtoll" latency atomic-store futex --line own --pause off --placement pinned --quiet \
        --out "$folder/$state-latency.jsonl" >/dev/null
}

# Blocks of one cell, kind and process, as tab-separated lines: cell, marked or not, mean.
blocks='
    select(type == "object" and .seq != null)
    | [([.group, .attempt, .cell, .kind, .process] | join("/")), .clean, .mean] | @tsv'

# Prints a row of the table: blocks, share marked, median distance from the cell's median of marked
# and of unmarked ones, and share of each that is off by more than 5%.
judge() {
    for file in "$folder/$1"-*.jsonl; do
        jq -r "$blocks" "$file" | sed "s|^|${file##*/}/|"
    done | sort -t$'\t' -k1,1 -k3,3g | awk -F '\t' -v state="$1" '
        function middle(values, count,    i, j, value) {
            for (i = 2; i <= count; i++) {
                value = values[i]
                for (j = i - 1; j > 0 && values[j] > value; j--) values[j + 1] = values[j]
                values[j + 1] = value
            }
            return count ? values[int((count + 1) / 2)] : 0
        }
        function end_cell(    i, median, off) {
            # Sorted by the mean.
            median = mean[int((count + 1) / 2)]
            for (i = 1; i <= count; i++) {
                off = mean[i] / median - 1
                if (off < 0) off = -off
                if (clean[i] == "true") { unmarked[++unmarkeds] = off; unmarked_far += off > 0.05 }
                else { marked[++markeds] = off; marked_far += off > 0.05 }
            }
            count = 0
        }
        $1 != cell { if (count) end_cell(); cell = $1 }
        { mean[++count] = $3; clean[count] = $2 }
        END {
            end_cell()
            share = markeds / (markeds + unmarkeds)
            of_marked = middle(marked, markeds)
            of_unmarked = middle(unmarked, unmarkeds)
            printf "%s: %d blocks, %.1f%% marked; off by, in the median: marked %.1f%%, unmarked %.1f%%; ",
                state, markeds + unmarkeds, 100 * share, 100 * of_marked, 100 * of_unmarked
            printf "off by more than 5%%: marked %.0f%%, unmarked %.0f%%\n",
                markeds ? 100 * marked_far / markeds : 0, 100 * unmarked_far / unmarkeds
            if (state == "calm") exit !(share < 0.1)
            exit !(markeds > 0 && of_marked > of_unmarked)
        }'
}

measure calm
cpu=$(taskset -cp $$ | sed 's/.*[ ,-]//')
taskset -c "$cpu" perl -e '
    use Time::HiRes qw(time usleep);
    while (1) { my $end = time + 0.005; 1 while time < $end; usleep(45_000); }' &
disturber=$!
trap 'kill "$disturber"' EXIT
measure disturbed

failed=0
judge calm || { echo "disturbed.sh: too many blocks are marked on a calm machine" >&2; failed=1; }
judge disturbed || { echo "disturbed.sh: marked blocks are no worse than the others" >&2; failed=1; }
exit "$failed"
