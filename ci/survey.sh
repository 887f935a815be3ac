#!/usr/bin/env bash
# Surveys a simulated machine with the command that the tests were built with, and renders the file
# again. (ci/long/survey.sh surveys this machine.)
set -euo pipefail
cd "$(dirname "$0")/.."
threadtoll=${CARGO_TARGET_DIR:-target}/debug/threadtoll
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$threadtoll" survey --quick --simulated-machine 1 --quiet --out "$work/survey.jsonl" --html "$work/survey.html" >"$work/survey.txt"
"$threadtoll" report "$work/survey.jsonl" --text --html "$work/again.html" >"$work/again.txt" 2>/dev/null
test -s "$work/again.txt"
cmp "$work/survey.html" "$work/again.html"
