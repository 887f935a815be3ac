#!/usr/bin/env bash
# Measures how far predictions of contention are off on this machine: hold-sweep, hold-think, pool and
# frequency-sweep above 1 µs, with threads that compute up to the CPUs and sleepers up to 64. Prints for
# each command the number of predicted cells with several threads, how many of their measured speed-ups
# and queues lie in the predicted 95% intervals, and the mean error of the speed-ups; of all cells, and
# of the undisturbed ones. At least 90% of the undisturbed cells must lie inside. About ten minutes,
# with nothing else running.
#
# usage: predictions.sh [FOLDER]      (default: a new one in threadtoll-results/)
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-threadtoll-results/predictions-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
mkdir -p "$folder"
cargo build --release --quiet
threadtoll=${THREADTOLL:-target/release/threadtoll}
cpus=$(nproc)

commands=(
    "hold-sweep std-mutex pthread parking-lot ticket --threads $cpus"
    "hold-sweep std-mutex parking-lot-fair --work sleep --threads 8,64 --hold-share 5%,10%,30%,60%,90%"
    "hold-think std-mutex parking-lot ticket --threads $cpus"
    "frequency-sweep std-mutex parking-lot ticket --threads $cpus"
    "pool"
)

# A line for each predicted cell of several threads: disturbed or not, and for speed-up and queue the
# measured figure and the bounds of the prediction.
cells='
    select(.schema == "threadtoll.record/1" and .contention.predicted.speedup != null)
    | select(.contention.threads > 1)
    | (.disturbance.disturbed * 4 > .disturbance.blocks) as $disturbed
    | .contention
    | [$disturbed, .speedup, .predicted.speedup, .predicted.speedup_interval95[],
       .queue_mean, .predicted.queue_mean_interval95[]]
    | @tsv'

judge() {
    awk -F '\t' -v name="$1" '
        { of[$1 == "true"]++; error = $3 / $2 - 1; off[$1 == "true"] += error < 0 ? -error : error
          inside[$1 == "true"] += $4 <= $2 && $2 <= $5; queue[$1 == "true"] += $7 <= $6 && $6 <= $8 }
        function print_of(what, cells, inside, queue, off) {
            if (cells) printf "%s, %s: speed-up inside in %d of %d, queue in %d; mean error %.1f%%\n",
                name, what, inside, cells, queue, 100 * off / cells
        }
        END {
            print_of("undisturbed", of[0], inside[0], queue[0], off[0])
            print_of("all", of[0] + of[1], inside[0] + inside[1], queue[0] + queue[1], off[0] + off[1])
            if (name == "together") exit !(of[0] > 0 && inside[0] >= 0.9 * of[0])
        }'
}

: >"$folder/cells.tsv"
for at in "${!commands[@]}"; do
    file=$folder/$at.jsonl
    rm -f "$file"
    # shellcheck disable=SC2086 # words of a command line
    "$threadtoll" contention ${commands[at]} --quiet --out "$file" --html "$folder/$at.html" \
        >"$folder/$at.txt"
    jq -r "$cells" "$file" | tee -a "$folder/cells.tsv" | judge "${commands[at]}"
    "$threadtoll" report "$file" --fold "$folder/$at.jsonl.gz" --without-histograms 2>/dev/null
    rm -f "$file" "$folder/$at.html"
done
judge together <"$folder/cells.tsv"
