#!/usr/bin/env bash
# Runs every scenario of queues on this machine, over ours and the Rust peers that can do it, for
# docs/results and docs/choosing-a-queue.md. Tables, the page, raw and folded records go to the given
# folder (default: a new one in threadtoll-results/). Nothing else should run. An hour or more on
# 2 CPUs.
#
# usage: queue-lab.sh [FOLDER [SCENARIO...]]
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-threadtoll-results/queue-lab-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
only=" ${*:2} "
mkdir -p "$folder/folded"
cargo build --release --quiet
threadtoll=target/release/threadtoll

# Between two threads.
pairs=(pipe pipe-bounded funnel funnel-bounded crossbeam-unbounded std-mpsc-unbounded
    kanal-unbounded flume-unbounded rtrb gil)
# With many senders.
senders=(funnel funnel-bounded crossbeam-bounded crossbeam-unbounded std-mpsc-unbounded
    kanal-bounded kanal-unbounded flume-unbounded)

# measure NAME ARGUMENTS...: one run, unless other scenarios were asked for.
measure() {
    local name=$1
    shift
    if [[ $only != "  " && $only != *" $name "* ]]; then
        return
    fi
    echo "threadtoll queue $*"
    "$threadtoll" queue "$@" --quiet --out "$folder/$name.jsonl" --html "$folder/$name.html" \
        >"$folder/$name.txt"
    "$threadtoll" report "$folder/$name.jsonl" --fold "$folder/folded/$name.jsonl.gz" \
        --without-histograms
}

measure payload payload "${pairs[@]}" --time 100ms
measure stream stream
measure ask-reply ask-reply
measure open-loop open-loop "${pairs[@]}" --time 200ms
measure night-watch night-watch "${pairs[@]}" --gap 1us,3us,10us,100us,1ms,10ms --time 300ms
measure burst burst "${pairs[@]}" --burst 1,16,256,4096 --gap 100us,1ms --time 100ms
measure funnel funnel "${senders[@]}" --senders 1,2,4 --time 300ms
measure flood flood "${senders[@]}" --time 300ms
measure for-me for-me --rate 50000 --time 1s
measure workers workers pipe "${senders[@]}" --receivers 1,2,4 --time 100ms
measure broadcast broadcast ring ring-singly disruptor-crate tokio-broadcast bundle --time 100ms
measure depth depth "${pairs[@]}" --depth 1,1000,100000,1000000,10000000 --time 100ms
echo "kept in $folder"
