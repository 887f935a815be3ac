#!/usr/bin/env bash
# Runs the same simulated measurements with this tree and with another commit, and compares result
# files, tables, pages, messages and exit codes.
#
#   ci/long/unchanged.sh COMMIT          everything must be equal to the byte
#   ci/long/unchanged.sh COMMIT words    only figures must be equal; texts, tables and pages may differ
#
# BEFORE=FILE and AFTER=FILE name existing binaries; BEFORE=DIR is the folder `before` of an earlier
# run. KEEP=DIR keeps the output.
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=${1:?a commit to compare with}
what=${2:-bytes}
work=${KEEP:-$(mktemp -d)}
mkdir -p "$work"
[ -n "${KEEP:-}" ] || trap 'rm -rf "$work"' EXIT

if [ -z "${BEFORE:-}" ]; then
    git worktree add --quiet --detach "$work/tree" "$commit"
    trap 'git worktree remove --force "$work/tree"; [ -n "${KEEP:-}" ] || rm -rf "$work"' EXIT
    (cd "$work/tree" && CARGO_TARGET_DIR=$OLDPWD/target/before cargo build --quiet)
    BEFORE=target/before/debug/threadtoll
fi
if [ -z "${AFTER:-}" ]; then
    cargo build --quiet
    AFTER=${CARGO_TARGET_DIR:-target}/debug/threadtoll
fi

commands=(
    "survey --quick"
    "survey"
    "survey --placement pinned --over 2us"
    "latency"
    "latency std-mpsc sleep-poll futex atomic-store spin-yield --payload 64 --neighbour spin"
    "latency futex park --keep-awake --placement free --samples 5000"
    "matrix"
    "matrix futex --level llc"
    "queue ask-reply"
    "queue ask-reply pipe rtrb call --wait spin --placement same-cpu --placement free"
    "queue stream"
    "queue stream funnel funnel-bounded --senders 1,2,9 --batch 16 --capacity 64,1024"
    "queue open-loop pipe funnel --rate 1000,100000"
    "queue burst pipe pipe-bounded --gap 100us"
    "queue depth pipe flume-bounded --depth 1,1000"
    "queue workers pipe crossbeam-bounded --receivers 1,2,4"
    "queue flood funnel crossbeam-array-queue"
    "queue funnel funnel kanal-bounded --senders 2,3,8 --important 2"
    "queue night-watch pipe std-mpsc-unbounded --gap 10us,1ms"
    "queue payload pipe-bounded funnel --payload 8,64,4096"
    "queue for-me funnel-bounded crossbeam-array-queue --senders 1,3 --rate 100000 --lose oldest --payload 8,512"
    "contention hold-sweep"
    "contention hold-sweep std-mutex striped/2:ticket std-rwlock --threads 1,2,8 --hold-share 10%,50%"
    "contention frequency-sweep"
    "contention hold-think std-mutex --work sleep --threads 1,4,16"
    "contention pool"
    "latency nonsense"
    "queue stream --wait nonsense"
    "contention hold-sweep spin --threads 9"
)

# Runs all commands with one binary, in a folder.
run() {
    local binary folder
    binary=$(realpath "$1") folder=$2
    mkdir -p "$folder"
    cd "$folder"
    local at=0 command
    for command in "${commands[@]}"; do
        at=$((at + 1))
        # shellcheck disable=SC2086 # words of a command line
        {
            "$binary" $command --simulated-machine 7 --plan >"$at.plan" 2>&1 || echo $? >>"$at.plan"
            "$binary" $command --simulated-machine 7 --out "$at.jsonl" >"$at.out" 2>"$at.err" || echo $? >>"$at.err"
        }
        [ -s "$at.jsonl" ] || continue
        "$binary" report "$at.jsonl" --text --html "$at.report.html" >"$at.report" 2>&1 || echo $? >>"$at.report"
        # Cuts a file in mid-run, renders it and completes it.
        local lines
        lines=$(wc -l <"$at.jsonl")
        head -n $((2 + lines / 2)) "$at.jsonl" >"$at.cut.jsonl"
        "$binary" report "$at.cut.jsonl" >"$at.cut.report" 2>"$at.cut.err" || echo $? >>"$at.cut.err"
        "$binary" ${command%% *} --resume "$at.cut.jsonl" --json >"$at.resumed.json" 2>"$at.resumed.err" || echo $? >>"$at.resumed.err"
    done
    local list
    for list in mechanisms queues peers locks scenarios; do "$binary" list $list >"list.$list"; done
    cd "$OLDPWD"
}

if [ -d "$BEFORE" ]; then
    cp -r "$BEFORE" "$work/before"
else
    (run "$BEFORE" "$work/before")
fi
(run "$AFTER" "$work/after")

if [ "$what" = words ]; then
    # The figures of a file: each line without its texts.
    figures='walk(if type == "object" then del(.text, .why, .what, .sentence) else . end)'
    for file in "$work"/before/*.json*; do
        cmp <(jq -c "$figures" "$file") <(jq -c "$figures" "$work/after/$(basename "$file")") \
            || { echo "unchanged.sh: $(basename "$file") has other figures" >&2; exit 1; }
    done
else
    diff -r --brief "$work/before" "$work/after"
fi
echo "unchanged.sh: $(ls "$work/before" | wc -l) files of ${#commands[@]} commands are equal"
