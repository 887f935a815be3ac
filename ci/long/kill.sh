#!/usr/bin/env bash
# Kills real surveys with -9 at random instants and checks what they leave: no file, if the kill
# came before it appeared; otherwise a file in which every line is valid, which `report` renders,
# and which `--resume` completes without measuring a finished group again.
#
# usage: kill.sh [SEED]      seed of the instants (default 1)
#
# All files are rendered and validated. Completing one takes ten seconds, so by default only every
# fifth is completed. KILLS=N kills N times (default 50), COMPLETE=N completes every Nth file.
set -euo pipefail
cd "$(dirname "$0")/../.."

seed=${1:-1}
kills=${KILLS:-50}
complete=${COMPLETE:-5}

cargo build --release --quiet
cargo build --release --quiet -p threadtoll-record --example validate
target=${CARGO_TARGET_DIR:-target}
threadtoll=$target/release/threadtoll
validate=$target/release/examples/validate

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "kill.sh: $1" >&2
    cp "$2" "${TMPDIR:-/tmp}/kill-$seed.jsonl"
    echo "kill.sh: the file is kept as ${TMPDIR:-/tmp}/kill-$seed.jsonl" >&2
    exit 1
}

started=$(date +%s%N)
"$threadtoll" survey --quick --quiet --out "$work/whole.jsonl" >"$work/whole.txt"
lasts=$((($(date +%s%N) - started) / 1000000))
"$validate" "$work/whole.jsonl" >/dev/null || fail "an uninterrupted survey is not valid" "$work/whole.jsonl"
echo "an uninterrupted survey takes $lasts ms"

absent=0 part=0 whole=0 completed=0
for ((kill = 1; kill <= kills; kill++)); do
    instant=$(awk -v seed="$seed" -v kill="$kill" -v lasts="$lasts" \
        'BEGIN { srand(seed * 1000 + kill); printf "%.3f", rand() * lasts / 1000 }')
    file=$work/$kill.jsonl
    "$threadtoll" survey --quick --quiet --out "$file" >/dev/null 2>"$work/err" &
    survey=$!
    sleep "$instant"
    { kill -KILL "$survey" && wait "$survey"; } 2>/dev/null || true
    if [[ ! -e $file ]]; then
        absent=$((absent + 1))
        echo "$kill: killed after $instant s: no file yet"
        continue
    fi
    cp "$file" "$work/left.jsonl"
    "$threadtoll" report --text "$file" >"$work/report.txt" 2>"$work/report.err" ||
        fail "$kill: report failed: $(head -1 "$work/report.err")" "$file"
    cmp -s "$file" "$work/left.jsonl" || fail "$kill: report changed the file" "$file"
    "$validate" "$file" >"$work/valid" 2>&1 || fail "$kill: $(head -1 "$work/valid")" "$file"
    state=$(grep -c 'groups of measurements are incomplete' "$work/report.err" || true)
    if [[ $state == 0 ]]; then whole=$((whole + 1)); else part=$((part + 1)); fi
    what="$(wc -l <"$file") lines"
    if ((kill % complete == 0)); then
        "$threadtoll" survey --quiet --resume "$file" >/dev/null 2>"$work/err" ||
            fail "$kill: resume failed: $(head -1 "$work/err")" "$file"
        "$validate" --finished "$file" >"$work/valid" 2>&1 || fail "$kill: $(head -1 "$work/valid")" "$file"
        kept=$(wc -l <"$work/left.jsonl")
        cmp -s <(head -n "$kept" "$work/left.jsonl") <(head -n "$kept" "$file") ||
            fail "$kill: resume changed lines that were there" "$file"
        completed=$((completed + 1))
        what="$what, completed to $(wc -l <"$file")"
    fi
    echo "$kill: killed after $instant s: $what"
    rm -f "$file" "${file%.jsonl}.html"
done
echo "of $kills kills, $absent came before the file, $part in the middle of the survey, $whole after its end; $completed were completed"
