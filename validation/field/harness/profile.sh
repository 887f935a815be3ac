#!/usr/bin/env bash
# Starts a program, which ends by itself after some seconds, and profiles it for four of them.
# Leaves screen, record and page in a folder of the output's name; prints both accounts.
#
# --launch lets the profiler start the program, and profiles it to its end
# --pid FILE profiles the process whose number the program has written into FILE
# --stop stops the program before it is profiled
# --after S begins S seconds after the start (1 by default)
#
# usage: profile.sh [--launch | --stop | --pid FILE] [--after S] NAME PROGRAM [ARGUMENT...]
set -euo pipefail
launch='' stop='' pid_file='' after=1
while [[ $1 == --* ]]; do
    case $1 in
        --launch) launch=1 ;;
        --stop) stop=1 ;;
        --pid) pid_file=$2; shift ;;
        --after) after=$2; shift ;;
    esac
    shift
done
name=$1
shift
out=/tmp/threadtoll-field/out/$name
rm -rf "$out"
mkdir -p "$out"
files=(--out "$out/p.jsonl" --html "$out/p.html")

echo "=== $name: $*"
if [[ -n $launch ]]; then
    # The program's output and the profiler's go to the same places.
    timeout -k 5 60 "$THREADTOLL" profile "${files[@]}" -- "$@" >"$out/screen" 2>"$out/err" || true
else
    "$@" >"$out/program" 2>&1 </dev/null &
    program=$!
    sleep "$after"
    pid=$program
    [[ -z $pid_file ]] || pid=$(cat "$pid_file")
    [[ -z $stop ]] || kill -STOP "$pid"
    timeout -k 5 60 "$THREADTOLL" profile -p "$pid" --seconds 4s "${files[@]}" \
        >"$out/screen" 2>"$out/err" || true
    [[ -z $stop ]] || kill -CONT "$pid"
    for _ in {1..50}; do
        kill -0 "$program" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$program" 2>/dev/null || true
    wait "$program" 2>/dev/null || true
    cat "$out/program"
fi
echo '--- screen'
cat "$out/screen"
head -20 "$out/err"
