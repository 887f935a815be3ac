#!/usr/bin/env bash
# Compares the tool's figures with hand-written benchmarks that share no code with it: for one peer
# of each language and way to join, in alternating runs on the same two CPUs.
#
#   agreement.sh CPU_A CPU_B [PAIRS] [LANGUAGE…]      languages: c cpp d go java
#
# Prints each pair, then the median ratio of the tool's figure to the benchmark's. Ends with 1 if
# one of them is outside 0.85 to 1.15. Takes the peers from target/peers, where peers/build.sh puts
# them, and the tool from target/release. Needs the languages' compilers and python3.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
a=${1:?two CPUs are needed} b=${2:?two CPUs are needed} pairs=${3:-6}
shift $(($# < 3 ? $# : 3))
[ $# -gt 0 ] || set -- c cpp d go java
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

options=(-O3 -march=native -DNDEBUG -pthread)
for language in "$@"; do
    case $language in
        c) gcc -std=gnu11 "${options[@]}" -o "$work/c" "$here/wfcqueue.c" -lurcu-common ;;
        cpp) g++ -std=c++17 "${options[@]}" -o "$work/cpp" "$here/boost_spsc.cpp" ;;
        java) javac -d "$work" "$here/java/Clq.java" ;;
        go) CGO_ENABLED=0 go build -o "$work/go" "$here/go/channel.go" ;;
        d) ldc2 -O2 -release -od="$work" -of="$work/d" "$here/d/concurrency.d" ;;
        *) echo "agreement.sh: $language is not c, cpp, d, go or java" >&2 && exit 2 ;;
    esac
done

python3 -u - "$target" "$work" "$a" "$b" "$pairs" "$@" <<'P'
import json, statistics, subprocess, sys

target, work, a, b, pairs, *languages = sys.argv[1:]
java = ["java", "-XX:+UseParallelGC", "-XX:+UseCondCardMark", "-Xms512m", "-Xmx3g", "-Xmn256m"]
# The peer, its way of waiting, and the benchmark.
rows = {
    "c": ("wfcqueue", "poll", [work + "/c"]),
    "cpp": ("boost-spsc", "poll", [work + "/cpp"]),
    "d": ("d-concurrency", "block", [work + "/d"]),
    "go": ("go-channel-pinned", "block", [work + "/go"]),
    "java": ("java-clq", "poll", java + ["-cp", work, "Clq"]),
}
SCENARIOS = ("ask-reply", "stream")


def by_tool(name, wait, scenario):
    """The round trip or the rate, and the capacity."""
    command = [target + "/release/threadtoll", "queue", scenario, name, "--wait", wait]
    command += ["--cpus", a + "," + b, "--placement", "pinned", "--time", "300ms"]
    command += ["--relaunch", "1", "--peers", target + "/peers", "--json", "--out", "-"]
    command += ["--batch", "1"] if scenario == "stream" else []
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    for record in map(json.loads, run.stdout.splitlines()):
        if record.get("cell", {}).get("queue") == name:
            capacity = record["cell"].get("capacity")
            if scenario == "stream":
                return record["rate_per_s"], capacity
            return 2 * record["one_way"]["p50"], capacity
    sys.exit(f"{name} was not measured in {scenario}")


def by_hand(language, command, scenario, capacity):
    if language in ("c", "cpp"):
        words = [scenario, a, b] + ([str(capacity)] if capacity else [])
        run = subprocess.run(command + words, stdout=subprocess.PIPE, text=True, check=True)
        return float(run.stdout.split()[1])
    run = subprocess.run(command + [a, b], stdout=subprocess.PIPE, text=True, check=True)
    return float(run.stdout.split()[1 if scenario == "ask-reply" else 3])


outside = 0
for language in languages:
    name, wait, command = rows[language]
    for scenario in SCENARIOS:
        ratios, capacity = [], None
        for pair in range(int(pairs)):
            # The order alternates, so that a drift favours neither.
            if pair % 2:
                hand = by_hand(language, command, scenario, capacity)
                own, capacity = by_tool(name, wait, scenario)
            else:
                own, capacity = by_tool(name, wait, scenario)
                hand = by_hand(language, command, scenario, capacity)
            ratios.append(own / hand)
            unit, scale = ("M/s", 1e6) if scenario == "stream" else ("ns a round trip", 1)
            print(f"{name}, {scenario}: {own / scale:.4g} and {hand / scale:.4g} {unit}")
        ratio = statistics.median(ratios)
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"{name}, {scenario}: tool / by hand {ratio:.3f}, {spread} in {pairs} pairs")
        outside += not 0.85 <= ratio <= 1.15
sys.exit(f"{outside} of the ratios are outside 0.85 to 1.15" if outside else 0)
P
