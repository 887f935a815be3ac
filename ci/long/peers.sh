#!/usr/bin/env bash
# Builds the peers in other languages and measures them in the same groups as our queues and the
# Rust peers, for docs/results. Tables, pages, raw and folded records go to the given folder
# (default: a new one in threadtoll-results/). Nothing else should run. On Debian 12, as root,
# INSTALL=yes installs what the peers need first. A peer that cannot be built ends the script.
#
# usage: peers.sh [FOLDER [RUN...]]      runs: ask-reply stream senders open-loop burst latency
#                                              ask-reply-2 stream-2 workers funnel depth
#                                              flood pool
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-threadtoll-results/peers-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
only=" ${*:2} "
mkdir -p "$folder/folded"

if [[ ${INSTALL:-no} == yes ]]; then
    apt-get update
    apt-get install --yes --no-install-recommends build-essential golang-go ldc \
        libboost-dev libtbb-dev liburcu-dev libconcurrentqueue-dev libreaderwriterqueue-dev \
        libatomic-queue-dev openjdk-17-jdk-headless maven python3
fi
peers/build.sh c cpp d go java rust | tee "$folder/built.txt"
cargo build --release --quiet
threadtoll=target/release/threadtoll
"$threadtoll" check >"$folder/check.txt"

# measure NAME ARGUMENTS...: one run, unless others were asked for.
measure() {
    local name=$1
    shift
    if [[ $only != "  " && $only != *" $name "* ]]; then
        return
    fi
    echo "threadtoll $*"
    # Tables and findings come from the report; what is said of rows that were left out is kept.
    "$threadtoll" "$@" --peers target/peers --quiet --out "$folder/$name.jsonl" \
        --html "$folder/$name.html" 2>&1 >/dev/null | tee "$folder/$name.warnings.txt"
    "$threadtoll" report "$folder/$name.jsonl" --text >"$folder/$name.txt"
    "$threadtoll" report "$folder/$name.jsonl" --fold "$folder/folded/$name.jsonl.gz" \
        --without-histograms
}

measure ask-reply queue ask-reply --placement pinned --time 100ms
measure stream queue stream --placement pinned --time 100ms
# The claim on boost::asio and more senders, with the queue that it is compared with.
measure senders queue stream asio-post asio-post-fetch funnel crossbeam-unbounded --senders 1,2,4 \
    --batch 1 --placement pinned --time 100ms
measure open-loop queue open-loop --rate 10000,1000000 --placement pinned --time 100ms \
    --relaunch 1
measure burst queue burst --burst 1,100 --gap 100us --placement pinned --time 100ms --relaunch 1
measure latency latency --placement pinned
# Again, because the machine may be in another regime minutes later.
measure ask-reply-2 queue ask-reply --placement pinned --time 100ms
measure stream-2 queue stream --placement pinned --time 100ms
# Only some queues of C and C++: with all of them, these runs would take an hour and a half.
several=(crossbeam-unbounded moodycamel-cq-blocking asio-post wfcqueue)
brief=(--placement pinned --time 50ms --relaunch 1)
measure workers queue workers pipe funnel "${several[@]}" --receivers 2 "${brief[@]}"
measure funnel queue funnel funnel "${several[@]}" --senders 1,3 "${brief[@]}"
measure depth queue depth pipe funnel "${several[@]}" --depth 1,1000,1000000 \
    "${brief[@]}"
measure flood queue flood funnel "${several[@]}" "${brief[@]}"
# As in Sukhovitsky's article: 100 ms a task, 5 ms of it under the lock.
measure pool contention pool java-reentrant-fair parking-lot-fair --hold 5ms --think 95ms --tasks 1000
echo "kept in $folder"
