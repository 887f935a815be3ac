#!/usr/bin/env bash
# Checks what `compare` says of runs whose truth is known.
#
#   ci/long/compare.sh             simulated machines: 504 pairs of unchanged runs, 240 with a slower
#                                  cell, in about 5 minutes after the build
#   ci/long/compare.sh FOLDER      this machine: 40 pairs of short runs of unchanged code, kept in
#                                  FOLDER, the runs of a pair at least two minutes apart; about 45
#                                  minutes, in which nothing else should run. Interrupted, it goes on
#                                  when called again with the same folder.
#
# GAP=SECONDS sets the time between the runs of a pair. Fails if more than 5% of the simulated
# comparisons of unchanged runs, or more than 4 of the 40 real ones, end with exit code 4.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -eq 0 ]; then
    exec cargo test --quiet -p threadtoll-lab --test lab comparison::many -- --ignored --nocapture
fi
folder=$1
gap=${GAP:-120}
mkdir -p "$folder"
cargo build --release --quiet
threadtoll=${THREADTOLL:-target/release/threadtoll}

commands=(
    "queue stream pipe rtrb --wait spin --batch 1"
    "queue ask-reply pipe crossbeam-bounded --wait spin --wait adaptive"
    "latency futex std-condvar atomic-rmw --placement pinned --line own --pause off"
    "contention hold-sweep std-mutex parking-lot --threads 2 --hold-share 10%,50%"
)
pairs_each=10

# Runs are made in turns. Run 2k and run 2k+1 of a command are a pair.
turns=$((2 * pairs_each))
for turn in $(seq 0 $((turns - 1))); do
    began=$SECONDS
    measured=no
    for at in "${!commands[@]}"; do
        file=$folder/$at-$turn.jsonl
        [ -s "$file.gz" ] && continue
        measured=yes
        # A machine of grade D cannot be compared; it may be better a minute later.
        for _ in 1 2 3; do
            rm -f "$file" "$folder/part.gz"
            # shellcheck disable=SC2086 # words of a command line
            "$threadtoll" ${commands[at]} --relaunch 3 --out "$file" --html "$folder/page.html" --quiet >/dev/null
            head -n 1 "$file" | grep -q '"grade":"D"' || break
        done
        "$threadtoll" report "$file" --fold "$folder/part.gz" --without-histograms 2>/dev/null
        mv "$folder/part.gz" "$file.gz"
        rm -f "$file"
    done
    echo "turn $((turn + 1)) of $turns" >&2
    if [ $measured = yes ] && [ $turn -lt $((turns - 1)) ]; then
        left=$((gap - (SECONDS - began)))
        [ $left -le 0 ] || sleep $left
    fi
done

# The 95% bounds of a share (Clopper and Pearson).
bounds() {
    awk -v k="$1" -v n="$2" '
        function at_most(k, p,   i, term, sum) {
            term = (1 - p) ^ n; sum = term
            for (i = 0; i < k; i++) { term *= (n - i) / (i + 1) * p / (1 - p); sum += term }
            return sum
        }
        BEGIN {
            low = 0; high = 1
            if (k > 0) { b = 1; for (i = 0; i < 50; i++) { m = (low + b) / 2; if (1 - at_most(k - 1, m) > 0.025) b = m; else low = m } }
            if (k < n) { a = 0; for (i = 0; i < 50; i++) { m = (a + high) / 2; if (at_most(k, m) < 0.025) high = m; else a = m } }
            printf "%d of %d (95%%: %.1f to %.1f%%)\n", k, n, 100 * low, 100 * high
        }'
}

regressions=0 refused=0 changes=0 compared=0
for at in "${!commands[@]}"; do
    for pair in $(seq 0 $((pairs_each - 1))); do
        base=$folder/$at-$((2 * pair)).jsonl.gz new=$folder/$at-$((2 * pair + 1)).jsonl.gz
        code=0
        "$threadtoll" compare "$base" "$new" --json >"$folder/$at-pair-$pair.json" 2>"$folder/why" || code=$?
        case $code in
            0 | 4) compared=$((compared + 1)) ;;
            *) refused=$((refused + 1)); cat "$folder/why" ;;
        esac
        [ $code -ne 4 ] || regressions=$((regressions + 1))
        ! grep -qE '"outcome":"(regression|worse|improvement|better)"' "$folder/$at-pair-$pair.json" \
            || changes=$((changes + 1))
        "$threadtoll" compare "$base" "$new" >"$folder/$at-pair-$pair.txt" 2>&1 || true
        echo "${commands[at]%% --*}, pair $((pair + 1)): exit $code, $(head -n 1 "$folder/$at-pair-$pair.txt")"
    done
done
echo "exit 4: $(bounds $regressions $compared)"
echo "any change: $(bounds $changes $compared)"
echo "refused: $refused"
[ $regressions -le 4 ]
