#!/usr/bin/env bash
# Measures rows of ours beside their twins, which are the same source compiled and registered as a
# foreign row is, and checks that the intervals of their ratios, before the twin widens them, are
# honest. Four kinds (stream, ask-reply, latency, contention) with three disjoint pairs each and one
# interval a pair and seed:
#
#   - at most 6% of all intervals exclude 1;
#   - no kind excludes 1 so often that the lower bound of its share (exact binomial, one-sided 95%) is
#     above 5%;
#   - no kind's median ratio is off by more than 2%.
#
# One set of seeds may fail by chance, so if the first does, a second one is measured; one of them has
# to pass, and both are printed. A seed takes about two minutes, and nothing else should run.
#
# usage: twins.sh [--seeds N] [--first SEED] [--time D] [--keep DIR]   (default: 20 seeds from 1)
set -euo pipefail
cd "$(dirname "$0")/../.."
seeds=20
first=1
time=()
keep=
while (($#)); do
    case $1 in
        --seeds) seeds=$2 ;;
        --first) first=$2 ;;
        --time) time=(--time "$2") ;;
        --keep) keep=$2 ;;
        *) echo "twins.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
cargo build --release --quiet
threadtoll=${CARGO_TARGET_DIR:-target}/release/threadtoll
if [[ -z $keep ]]; then
    keep=$(mktemp -d)
    trap 'rm -rf "$keep"' EXIT
fi
mkdir -p "$keep"

# One line for each row that has a twin in its group: kind, label, ratio, and its bounds.
pairs='
    select(.schema == "threadtoll.record/1" and .cell.origin != "twin")
    | (.cell.mechanism // .cell.queue // .cell.lock) as $name
    | .cell.placement as $placement
    | .against[] | select(.cell.origin == "twin")
    | [$kind, $name + " " + $placement, .ratio, (.interval95_raw // .interval95)[]] | @tsv'

measure() {
    local seed=$1 kind=$2
    shift 2
    "$threadtoll" "$@" "${time[@]}" --seed "$seed" --quiet --json 2>"$keep/stderr" |
        jq -r --arg kind "$kind" "$pairs" || { cat "$keep/stderr" >&2; return 1; }
}

# Pairs of one seed. Each twin stands beside its own row, and no two pairs share blocks.
seed() {
    measure "$1" stream queue stream pipe pipe-bounded funnel --wait spin --batch 1
    measure "$1" ask-reply queue ask-reply pipe pipe-bounded funnel --wait spin
    measure "$1" latency latency atomic-store futex --line own --pause off \
        --placement pinned --placement same-cpu
    for lock in std-mutex parking-lot ticket; do
        measure "$1" contention contention hold-think "$lock" --threads 2
    done
}

# Reads the pairs of a set of seeds; exits with 1 if a criterion does not hold.
judge() {
    sort -k1,1 -k3,3g -t$'\t' "$1" | awk -F '\t' -v seeds="$seeds" '
        # Probability that of n intervals at least k exclude 1, if each does with probability p.
        function tail(n, k, p,    i, term, below) {
            term = (1 - p) ^ n
            for (i = 0; i < k; i++) {
                below += term
                term *= (n - i) / (i + 1) * p / (1 - p)
            }
            return 1 - below
        }
        # The smallest such p for which that is no less probable than 5%.
        function bound(n, k,    low, high, i, p) {
            high = 1
            for (i = 0; i < 40; i++) {
                p = (low + high) / 2
                if (tail(n, k, p) < 0.05) low = p; else high = p
            }
            return low
        }
        function finish(    median, outcome, least) {
            if (!n) return
            median = n % 2 ? ratio[(n + 1) / 2] : (ratio[n / 2] + ratio[n / 2 + 1]) / 2
            least = bound(n, out)
            outcome = "ok"
            if (n != 3 * seeds) outcome = "has " n " intervals, not " 3 * seeds
            else if (least > 0.05) outcome = "excludes 1 too often"
            else if (median > 1.02 || median < 1 / 1.02) outcome = "is off"
            if (outcome != "ok") failed = 1
            printf "%-11s %3d of %3d intervals exclude 1 (%.1f%%, at least %.1f%%), median ratio %.4f: %s\n",
                kind, out, n, 100 * out / n, 100 * least, median, outcome
            all += n; all_out += out; kinds += 1
            n = out = 0
        }
        $1 != kind { finish(); kind = $1 }
        { ratio[++n] = $3; if ($4 > 1 || $5 < 1) out++ }
        END {
            finish()
            share = all ? 100 * all_out / all : 0
            if (kinds != 4 || share > 6) failed = 1
            printf "all         %3d of %3d intervals exclude 1 (%.1f%%, at most 6%%)\n",
                all_out, all, share
            exit failed
        }'
}

for set in 1 2; do
    last=$((first + seeds - 1))
    pairs_file=$keep/pairs-$set.tsv
    : >"$pairs_file"
    for seed in $(seq "$first" "$last"); do
        seed "$seed" >>"$pairs_file"
        echo "seed $seed: $(wc -l <"$pairs_file") intervals" >&2
    done
    echo "seeds $first to $last:"
    if judge "$pairs_file"; then
        exit 0
    fi
    first=$((last + 1))
done
exit 1
