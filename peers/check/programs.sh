#!/usr/bin/env bash
# Compares the programs' own figures with hand-written benchmarks that share no code with them: one
# for each language, for one peer, in alternating runs on the same two CPUs.
#
#   programs.sh CPU_A CPU_B [PAIRS] [LANGUAGE…]
#
# Prints each pair, then the median ratio of the program's figures to the benchmark's. Takes the
# programs from target/peers, where peers/build.sh puts them. Needs the languages' compilers and
# python3.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
a=${1:?two CPUs are needed} b=${2:?two CPUs are needed} pairs=${3:-10}
shift $(($# < 3 ? $# : 3))
[ $# -gt 0 ] || set -- java go d
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for language in "$@"; do
    case $language in
    java) javac -d "$work" "$here/java/Clq.java" ;;
    go) CGO_ENABLED=0 go build -o "$work/channel" "$here/go/channel.go" ;;
    d) ldc2 -O2 -release -od="$work" -of="$work/concurrency" "$here/d/concurrency.d" ;;
    *) echo "programs.sh: $language is not java, go or d" >&2 && exit 2 ;;
    esac
done

python3 -u - "$target/peers" "$work" "$a" "$b" "$pairs" "$@" <<'P'
import statistics, subprocess, sys

peers, work, a, b, pairs, *languages = sys.argv[1:]
java = ["java", "-XX:+UseParallelGC", "-Xms512m", "-Xmx3g", "-Xmn256m", "-cp", work]
# The program, its peer, way of waiting and capacity, and the benchmark.
rows = {
    "java": ("java-jdk", "java-clq", "poll", "", java + ["Clq"]),
    "go": ("go-channels", "go-channel-pinned", "block", " capacity=1024", [work + "/channel"]),
    "d": ("d-concurrency", "d-concurrency", "block", "", [work + "/concurrency"]),
}


def of_program(program, name, wait, capacity):
    pipe = subprocess.PIPE
    process = subprocess.Popen(peers + "/" + program, stdin=pipe, stdout=pipe, text=True)

    def ask(line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        answer = [process.stdout.readline().rstrip()]
        assert not answer[0].startswith("error"), answer[0]
        while line.startswith("block") and answer[-1] != "end":
            answer.append(process.stdout.readline().rstrip())
        return answer

    def median(lines):
        values = [tuple(map(int, line.split())) for line in lines[1:1 + int(lines[0].split()[1])]]
        left = sum(times for _, times in values) / 2
        for value, times in values:
            left -= times
            if left <= 0:
                return value

    def rate(lines):
        return float(lines[1].split()[1])

    figures = []
    for scenario, length, read in (("ask-reply", "100ms", median), ("stream", "50ms", rate)):
        ask(f"prepare queue {name} {scenario} cpus={a},{b} wait={wait}{capacity}")
        figures.append(statistics.median(read(ask("block " + length)) for _ in range(10)))
    process.communicate("quit\n")
    return figures


def by_hand(command):
    run = subprocess.run(command + [a, b], stdout=subprocess.PIPE, text=True, check=True)
    _, trip, _, rate = run.stdout.split()
    return [float(trip), float(rate)]


for language in languages:
    program, name, wait, capacity, command = rows[language]
    ratios = []
    for pair in range(int(pairs)):
        # Who goes first alternates, so that a drift favours neither.
        if pair % 2:
            hand = by_hand(command)
            own = of_program(program, name, wait, capacity)
        else:
            own = of_program(program, name, wait, capacity)
            hand = by_hand(command)
        ratios.append([own[i] / hand[i] for i in range(2)])
        print(f"{name}: round trip {own[0]:.0f} and {hand[0]:.0f} ns, "
              f"{own[1] / 1e6:.3f} and {hand[1] / 1e6:.3f} M/s")
    trip, rate = (statistics.median(ratio[i] for ratio in ratios) for i in range(2))
    print(f"{name}: program / by hand: round trip {trip:.3f}, rate {rate:.3f}, "
          f"medians of {pairs} pairs")
P
