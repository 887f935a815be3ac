#!/usr/bin/env bash
# Compares the tool's figures with hand-written benchmarks that share no code with it: for one peer
# of each language and way to join, in alternating runs on the same two CPUs.
#
#   agreement.sh CPU_A CPU_B [PAIRS] [LANGUAGE…]      languages: c cpp d go java
#
# Each run also times a bare hand-off between the CPUs. A machine whose CPUs are lent may change the
# time of a hand-off severalfold between two runs, and a pair tells nothing then: only pairs that
# saw it in one state count. All ends poll, since a wake-up takes what the host makes of it. From an
# adapter's time per message of a stream, what the interface takes is subtracted: that of our pipe as
# an adapter less that without, in the same run; the benchmark's calls are inlined there. In a round
# trip both make calls, which the CPU does while it waits for lines. Prints each pair, then the median ratio of the tool's figure to the
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
        c)
            for scenario in ask-reply stream; do
                [ $scenario = stream ] && inlined=-DINLINED || inlined=
                gcc -std=gnu11 "${options[@]}" $inlined -o "$work/c-$scenario" "$here/wfcqueue.c" \
                    -lurcu-common
            done
            ;;
        cpp)
            for scenario in ask-reply stream; do
                [ $scenario = stream ] && inlined=-DINLINED || inlined=
                g++ -std=c++17 "${options[@]}" $inlined -o "$work/cpp-$scenario" "$here/boost_spsc.cpp"
            done
            ;;
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
    "c": ("wfcqueue", "poll", [work + "/c-"]),
    "cpp": ("boost-spsc", "poll", [work + "/cpp-"]),
    "d": ("d-concurrency", "poll", [work + "/d"]),
    "go": ("go-channel-pinned", "poll", [work + "/go"]),
    "java": ("java-clq", "poll", java + ["-cp", work, "Clq"]),
}
ADAPTERS = ("c", "cpp")
SCENARIOS = ("ask-reply", "stream")
# A pair counts if the longest of its hand-offs takes at most so many times the shortest; so many
# are tried for each that is asked for.
SAME, ATTEMPTS = 1.25, 8


def by_tool(language, name, wait, scenario):
    """The states in which the tool saw the machine, as the time of a hand-off and that of a message
    or a round trip, and the capacity."""
    adapter = ["pipe", "pipe-adapter"] if language in ADAPTERS and scenario == "stream" else []
    command = [target + "/release/threadtoll", "queue", scenario, name, *adapter]
    command += ["--wait", wait] + (["--wait", "spin"] if adapter else [])
    command += ["--cpus", a + "," + b, "--placement", "pinned", "--time", "300ms"]
    command += ["--relaunch", "1", "--peers", target + "/peers", "--json", "--out", "-"]
    command += ["--batch", "1"] if scenario == "stream" else []
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)

    def time(of):
        """Of a message, or of a round trip."""
        if scenario == "stream":
            return 1e9 / of["rate_per_s"] if of["rate_per_s"] else None
        p50 = of["one_way"]["p50"] if of["one_way"] else None
        return 2 * p50 if p50 else None

    hand_off, times, capacity, group = None, {}, None, None
    records = [json.loads(line) for line in run.stdout.splitlines()]
    # Of all records only those in the group of this queue: others saw the machine at other times.
    for record in records:
        if "regimes" in record and record["cell"].get("queue") == name:
            group = record["group"]
    for record in records:
        # A block has no regimes.
        if "regimes" not in record:
            continue
        cell = record["cell"]
        # Our pipe is in a group of its own kind, with the adapter or without.
        if record["group"] != group and cell.get("queue") not in adapter:
            continue
        queue = cell.get("queue")
        if cell.get("mechanism") == "atomic-store":
            hand_off = record["one_way"]["p50"]
        if cell.get("origin") == "twin" or queue == name and cell.get("wait") != wait:
            continue
        if queue == name:
            capacity = cell.get("capacity")
        if queue == "pipe-adapter" and cell.get("wait") != "poll":
            continue
        of_state = {of["reference_ns"]: time(of) for of in record["regimes"]}
        times[queue] = of_state or {None: time(record)}
    def near(queue, state):
        """The time of another row in the same state, whose reference hand-off is nearly the same."""
        found = times.get(queue, {})
        if state is None or None in found:
            return found.get(None)
        within = [of for of in found if max(of, state) <= SAME * min(of, state)]
        return found[min(within, key=lambda of: abs(of - state))] if within else None

    states = []
    for state, own in times.get(name, {}).items():
        others = [near(queue, state) for queue in adapter]
        if own is None or None in others:
            continue
        interface = others[1] - others[0] if others else 0
        states.append((state or hand_off, own - interface))
    if not states:
        print(f"{name}, {scenario}: the tool saw no state for long enough")
    return states, capacity


def by_hand(language, command, scenario, capacity):
    """The time of a message or a round trip, and that of a hand-off before and after it."""
    words = [a, b] + ([str(capacity)] * 2 if language == "go" else [])
    if language in ADAPTERS:
        command = [command[0] + scenario]
        words = [scenario, a, b] + ([str(capacity)] if capacity else [])
    run = subprocess.run(command + words, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split() for line in run.stdout.splitlines()]
    names = ("messages_per_s", "rate_per_s") if scenario == "stream" else ("round_trip_ns",)
    at = next(at for at, line in enumerate(lines) if line[0] in names)
    figure = float(lines[at][1])
    time = 1e9 / figure if scenario == "stream" else figure
    return time, [float(lines[at - 1][1]), float(lines[at + 1][1])]


outside = 0
for language in languages:
    name, wait, command = rows[language]
    for scenario in SCENARIOS:
        ratios, capacity = [], None
        for attempt in range(ATTEMPTS * int(pairs)):
            # The order alternates, so that a drift favours neither; the first run says what the
            # capacity is.
            if attempt % 2:
                hand, of_hand = by_hand(language, command, scenario, capacity)
                states, capacity = by_tool(language, name, wait, scenario)
            else:
                states, capacity = by_tool(language, name, wait, scenario)
                hand, of_hand = by_hand(language, command, scenario, capacity)
            for hand_off, own in states:
                hand_offs = [hand_off] + of_hand
                same = max(hand_offs) <= SAME * min(hand_offs)
                ratios += [own / hand] if same else []
                figures = f"{own:.4g} and {hand:.4g} ns"
                took = ", ".join(f"{ns:.0f}" for ns in hand_offs)
                left_out = "" if same else "; left out"
                print(f"{name}, {scenario}: {figures}; hand-offs {took} ns{left_out}")
            if len(ratios) >= int(pairs):
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
