#!/usr/bin/env bash
# Compares the tool's figures with hand-written benchmarks that share no code with it: for one or two
# peers of each language, in turns on the same two CPUs.
#
#   agreement.sh CPU_A CPU_B [PAIRS] [LANGUAGE…]      languages: c cpp d go java
#
# A machine whose CPUs are lent may change the time of a hand-off between them severalfold, within
# seconds. The benchmark times bare hand-offs between its blocks, the tool between its own; figures
# are compared where a hand-off took as long in both: a pair is the tool's figure and the median of
# the benchmark's blocks, in two runs one after the other, at one such level. The benchmark's blocks
# are as long as those of the tool's run before it: a queue may fill for as long as they last. The
# level counts that is first seen in as many pairs as were asked for, or else that with the most,
# if three pairs are of it; the others are printed.
#
# All ends poll, since a wake-up takes what the host makes of it. The benchmarks call a queue as the
# tool does, adapters through a pointer and Go's through an interface: inlined, a message of a
# stream may take half as long, which the tool shows as the difference between our pipe and our pipe
# as an adapter. The ring of D is a second copy of the peer's design, and JCTools comes from the
# peer's file.
#
# Prints each pair, then, for each level, the median of the ratios of the tool's figure to the
# benchmark's, and the range of the benchmark's own medians. Ends with 1 if one of those that count
# is outside 0.85 to 1.15, or missing. Takes the peers from target/peers, where peers/build.sh puts
# them, and the tool from target/release. Needs the languages' compilers and python3.
# BENCHMARKS=FOLDER keeps the compiled benchmarks there and takes those that it has, so a machine
# with the same model of CPU needs no compilers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
[ $# -ge 2 ] || {
    echo "usage: agreement.sh CPU_A CPU_B [PAIRS] [LANGUAGE…]" >&2
    exit 2
}
a=$1 b=$2 pairs=${3:-6}
shift $(($# < 3 ? $# : 3))
[ $# -gt 0 ] || set -- c cpp d go java
[[ $pairs =~ ^[1-9][0-9]*$ ]] || {
    echo "agreement.sh: the number of pairs, $pairs, is not 1 or more" >&2
    exit 2
}
for language in "$@"; do
    case $language in
        c) file=liburcu.so ;;
        cpp) file=boost-lockfree.so ;;
        d) file=d-channel ;;
        go) file=go-channels ;;
        java) file=java-jctools ;;
        *) echo "agreement.sh: $language is not c, cpp, d, go or java" >&2 && exit 2 ;;
    esac
    [ -f "$target/peers/$file" ] || {
        echo "agreement.sh: $target/peers/$file is missing: peers/build.sh builds it" >&2
        exit 2
    }
done

if [ -n "${BENCHMARKS:-}" ]; then
    mkdir -p "$BENCHMARKS"
    work=$(cd "$BENCHMARKS" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi

options=(-O3 -march=native -DNDEBUG -pthread)
for language in "$@"; do
    compiled=$work/$language
    [ "$language" != java ] || compiled=$work/Polled.class
    [ ! -f "$compiled" ] || continue
    case $language in
        c) gcc -std=gnu11 "${options[@]}" -o "$work/c" "$here/wfcqueue.c" -lurcu-common ;;
        cpp) g++ -std=c++17 "${options[@]}" -o "$work/cpp" "$here/boost_spsc.cpp" ;;
        java) javac -cp "$target/peers/java-jctools" -d "$work" "$here/java/Polled.java" ;;
        go) CGO_ENABLED=0 go build -o "$work/go" "$here/go/channel.go" ;;
        d) ldc2 -O2 -release -od="$work" -of="$work/d" "$here/d/polled.d" ;;
    esac
done

python3 -u - "$target" "$work" "$a" "$b" "$pairs" "$@" <<'P'
import json, statistics, subprocess, sys

target, work, a, b, pairs, *languages = sys.argv[1:]
pairs = int(pairs)
java = ["java", "-XX:+UseParallelGC", "-XX:+UseCondCardMark", "-Xms512m", "-Xmx3g", "-Xmn256m"]
java += ["-cp", f"{work}:{target}/peers/java-jctools", "Polled"]
# The peers and their benchmarks.
rows = {
    "c": [("wfcqueue", [work + "/c"])],
    "cpp": [("boost-spsc", [work + "/cpp"])],
    "d": [(name, [work + "/d", name]) for name in ("d-concurrency", "d-channel")],
    "go": [("go-channel-pinned", [work + "/go"])],
    "java": [(name, java + [name]) for name in ("java-clq", "jctools-spsc-bounded")],
}
SCENARIOS = ("ask-reply", "stream")
# Hand-offs are equally long if the longest takes at most so many times the shortest; a figure of
# fewer blocks than these is none; at most so many times the pairs that are asked for are tried.
SAME, FEWEST, ATTEMPTS, TIME_MS = 1.25, 10, 4, 300
# Of one run of either, in seconds.
LONGEST = 300


def alike(*hand_offs):
    return max(hand_offs) <= SAME * min(hand_offs)


def by_tool(name, scenario):
    """The length of a block in microseconds, the capacity, and times of a message or a round trip
    with those of a hand-off meanwhile."""
    command = [target + "/release/threadtoll", "queue", scenario, name, "--wait", "poll"]
    command += ["--cpus", a + "," + b, "--placement", "pinned", "--time", f"{TIME_MS}ms"]
    command += ["--relaunch", "1", "--peers", target + "/peers", "--json", "--out", "-"]
    command += ["--batch", "1"] if scenario == "stream" else []
    run = subprocess.run(command, capture_output=True, timeout=LONGEST)
    # A block has no regimes.
    records = [json.loads(line) for line in run.stdout.splitlines()]
    records = [record for record in records if "regimes" in record]
    rows = [record for record in records if record["cell"].get("queue") == name]
    if not rows:
        sys.exit(f"the tool has no figure of {name}: {run.stderr.decode()}")
    row = rows[0]

    def time(of):
        if scenario == "stream":
            return 1e9 / of["rate_per_s"] if of["rate_per_s"] else None
        return 2 * of["one_way"]["p50"] if of["one_way"] else None

    levels = [(level["reference_ns"], time(level)) for level in row["regimes"]
              if level["blocks"] >= FEWEST]
    if not row["regimes"]:
        # The whole row is of the level of its reference.
        levels = [(record["one_way"]["p50"], time(row)) for record in records
                  if record["cell"].get("mechanism") == "atomic-store"
                  and record["group"] == row["group"]]
    length_us = round(1000 * TIME_MS / row["disturbance"]["blocks"])
    levels = [(hand_off, figure) for hand_off, figure in levels if hand_off and figure]
    return length_us, row["cell"].get("capacity"), levels


def by_hand(command, scenario, length_us, capacity):
    """For each block, the times of a hand-off before and after it, and that of a message or a round
    trip."""
    words = command + [scenario, a, b, str(length_us)] + ([str(capacity)] if capacity else [])
    run = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=LONGEST)
    lines = [line.split() for line in run.stdout.splitlines()]
    hand_offs = [float(figure) for name, figure in lines if name == "hand_off_ns"]
    times = [float(figure) for name, figure in lines if name == "time_ns"]
    return list(zip(hand_offs, hand_offs[1:], times))


def compare(name, command, scenario):
    """Whether the figures agree."""
    # The ratios and the figures by hand, by level of the hand-off.
    ratios, by_itself = {}, {}
    for _ in range(ATTEMPTS * pairs):
        length_us, capacity, levels = by_tool(name, scenario)
        blocks = by_hand(command, scenario, length_us, capacity)
        for hand_off, tool in levels:
            times = [time for before, after, time in blocks if alike(before, after, hand_off)]
            if len(times) < FEWEST:
                continue
            hand = statistics.median(times)
            level = next((at for at in ratios if alike(at, hand_off)), hand_off)
            ratios.setdefault(level, []).append(tool / hand)
            by_itself.setdefault(level, []).append(hand)
            print(f"{name}, {scenario}: {tool:.4g} and {hand:.4g} ns where a hand-off took "
                  f"{hand_off:.0f} ns ({len(times)} blocks of {length_us} us by hand)")
        if any(len(found) >= pairs for found in ratios.values()):
            break
    most = max(ratios.values(), key=len, default=[])
    enough = len(most) >= min(3, pairs)
    if not enough:
        print(f"{name}, {scenario}: too few pairs are of one level")
    for level, found in sorted(ratios.items()):
        own = by_itself[level]
        print(f"{name}, {scenario}: tool / by hand {statistics.median(found):.3f}, "
              f"{min(found):.3f} to {max(found):.3f} in {len(found)} pairs where a hand-off took "
              f"{level:.0f} ns; by hand {min(own):.4g} to {max(own):.4g} ns"
              f"{'; counts' if enough and found is most else ''}")
    return enough and 0.85 <= statistics.median(most) <= 1.15


outside = sum(not compare(name, command, scenario) for language in languages
              for name, command in rows[language] for scenario in SCENARIOS)
sys.exit(f"{outside} of the ratios are outside 0.85 to 1.15, or missing" if outside else 0)
P
