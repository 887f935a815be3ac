#!/usr/bin/env bash
# Compares the tool's figures with hand-written benchmarks that share no code with it: for one peer
# of each language and way to join, in alternating runs on the same two CPUs.
#
#   agreement.sh CPU_A CPU_B [PAIRS] [LANGUAGE…]      languages: c cpp d go java
#
# Each run also times a bare hand-off between the CPUs. A machine whose CPUs are lent may change the
# time of a hand-off severalfold between two runs, and a pair tells nothing then: only pairs that
# saw it in one state count. Prints each pair, then the median ratio of the tool's figure to the
# benchmark's. Ends with 1 if one of them is outside 0.85 to 1.15. Takes the peers from target/peers, where peers/build.sh puts
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
# A pair counts if the longest of its hand-offs takes at most so many times the shortest; so many
# are tried for each that is asked for.
SAME, ATTEMPTS = 1.25, 8


def by_tool(name, wait, scenario):
    """The round trip or the rate, the hand-offs that were measured with it, and the capacity."""
    command = [target + "/release/threadtoll", "queue", scenario, name, "--wait", wait]
    command += ["--cpus", a + "," + b, "--placement", "pinned", "--time", "300ms"]
    command += ["--relaunch", "1", "--peers", target + "/peers", "--json", "--out", "-"]
    command += ["--batch", "1"] if scenario == "stream" else []
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    figure, hand_offs = None, []
    for record in map(json.loads, run.stdout.splitlines()):
        cell = record.get("cell", {})
        # A block has no such member.
        regimes = record.get("regimes")
        if cell.get("mechanism") == "atomic-store" and regimes is not None:
            of_each = [regime["one_way"]["p50"] for regime in regimes if regime.get("one_way")]
            hand_offs += of_each or [record["one_way"]["p50"]]
        if cell.get("queue") == name and regimes is not None:
            rate = scenario == "stream"
            figure = record["rate_per_s"] if rate else 2 * record["one_way"]["p50"]
            capacity = cell.get("capacity")
    if figure is None or not hand_offs:
        sys.exit(f"{name} was not measured in {scenario}")
    return figure, hand_offs, capacity


def by_hand(language, command, scenario, capacity):
    """As `by_tool`, without the capacity."""
    words = [a, b]
    if language in ("c", "cpp"):
        words = [scenario, a, b] + ([str(capacity)] if capacity else [])
    run = subprocess.run(command + words, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split() for line in run.stdout.splitlines()]
    names = ("messages_per_s", "rate_per_s") if scenario == "stream" else ("round_trip_ns",)
    at = next(at for at, line in enumerate(lines) if line[0] in names)
    return float(lines[at][1]), [float(lines[at - 1][1]), float(lines[at + 1][1])]


outside = 0
for language in languages:
    name, wait, command = rows[language]
    for scenario in SCENARIOS:
        ratios, capacity = [], None
        for attempt in range(ATTEMPTS * int(pairs)):
            # The order alternates, so that a drift favours neither.
            if attempt % 2:
                hand, of_hand = by_hand(language, command, scenario, capacity)
                own, of_own, capacity = by_tool(name, wait, scenario)
            else:
                own, of_own, capacity = by_tool(name, wait, scenario)
                hand, of_hand = by_hand(language, command, scenario, capacity)
            hand_offs = of_own + of_hand
            same = max(hand_offs) <= SAME * min(hand_offs)
            ratios += [own / hand] if same else []
            unit, scale = ("M/s", 1e6) if scenario == "stream" else ("ns a round trip", 1)
            figures = f"{own / scale:.4g} and {hand / scale:.4g} {unit}"
            took = ", ".join(f"{ns:.0f}" for ns in hand_offs)
            left_out = "" if same else "; left out"
            print(f"{name}, {scenario}: {figures}; hand-offs {took} ns{left_out}")
            if len(ratios) == int(pairs):
                break
        if not ratios:
            print(f"{name}, {scenario}: no pair saw the machine in one state")
            outside += 1
            continue
        ratio = statistics.median(ratios)
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"{name}, {scenario}: tool / by hand {ratio:.3f}, {spread} in {len(ratios)} pairs")
        outside += not 0.85 <= ratio <= 1.15
sys.exit(f"{outside} of the ratios are outside 0.85 to 1.15" if outside else 0)
P
