#!/usr/bin/env bash
# Runs everything in this folder that needs no choice by its caller, goes on after a failure, and
# prints what ran, how long it took and what failed. Hours on two CPUs, on which nothing else should
# run. The output of each goes to a file in the given folder.
#
# usage: run.sh [FOLDER [NAME...]]      (default: a new folder in threadtoll-results/, and all)
set -uo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-threadtoll-results/long-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
mkdir -p "$folder"
folder=$(realpath "$folder")
names=("${@:2}")

# Name and command of each, the quicker ones first.
checks=(
    "portable      ci/long/portable.sh"
    "shuttle       ci/long/shuttle.sh"
    "model         ci/long/model.sh"
    "survey        ci/long/survey.sh"
    "sanitizers    ci/long/sanitizers.sh"
    "miri          ci/long/miri.sh"
    "real          ci/long/real.sh"
    "served        ci/long/served.sh"
    "disturbed     ci/long/disturbed.sh $folder/disturbed"
    "kill          ci/long/kill.sh"
    "twins         ci/long/twins.sh"
    "loom          ci/long/loom.sh"
    "compare       ci/long/compare.sh"
    "sentences     ci/long/sentences.sh"
    "stress        ci/long/stress.sh"
    "predictions   ci/long/predictions.sh $folder/predictions"
    "queues        ci/long/queues.sh $folder/queues"
    "queue-lab     ci/long/queue-lab.sh $folder/queue-lab"
    "locks         ci/long/locks.sh $folder/locks"
    "peers         ci/long/peers.sh $folder/peers"
    "stacks        ci/long/profile-stacks.sh"
    "process       ci/long/profile-process.sh"
    "trust         ci/long/profile-trust.sh"
    "cost          ci/long/profile-cost.sh"
    "causes        ci/long/profile-causes.sh"
    "accuracy      ci/long/profile-accuracy.sh"
    "field         ci/long/profile-field.sh"
    "real-profiles ci/long/profile-real.sh $folder/profiles"
)

failed=0
table=$(printf '%-14s %8s  %s' check seconds result)
for check in "${checks[@]}"; do
    read -r name command <<<"$check"
    [[ ${#names[@]} == 0 || " ${names[*]} " == *" $name "* ]] || continue
    echo "== $command"
    started=$SECONDS
    # shellcheck disable=SC2086 # words of a command line
    if $command >"$folder/$name.txt" 2>&1; then
        result=passed
    else
        result="failed ($?), see $folder/$name.txt"
        failed=1
    fi
    table+=$'\n'$(printf '%-14s %8d  %s' "$name" $((SECONDS - started)) "$result")
done
echo "$table" | tee "$folder/table.txt"
exit $failed
