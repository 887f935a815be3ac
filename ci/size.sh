#!/usr/bin/env bash
# Compares how large the project is with ci/size.txt: code lines, dependencies, the command and a
# page. Fails if one is more than 5% larger than its figure there.
#
#   ci/size.sh              compares
#   ci/size.sh --write      writes the present sizes to ci/size.txt
#
# A code line is one that is neither blank nor only a comment. Lines of `#[cfg(test)]` modules, of
# files named tests.rs, of folders named tests or benches, and of models are tests. The command is
# that of the test build, without symbols. SECONDS_OF=FILE names a file with the seconds of each
# check, which are shown too, but not compared: machines differ by more than 5%.
set -euo pipefail
cd "$(dirname "$0")/.."
threadtoll=${CARGO_TARGET_DIR:-target}/debug/threadtoll
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints `production tests` of the tracked files below a folder.
lines() {
    git ls-files -z --cached --others --exclude-standard -- "$@" \
        | grep -zE '\.(rs|c|cpp|h|hpp|d|java|go|sh)$' \
        | while IFS= read -rd '' file; do [[ -e $file ]] && printf '%s\0' "$file"; done \
        | xargs -0r awk '
            FNR == 1 {
                test_file = FILENAME ~ /(^|\/)(tests|benches|models)\// || FILENAME ~ /\/(tests|models)\.rs$/
                inside = armed = 0
            }
            /^[[:space:]]*$/ || /^[[:space:]]*(\/\/|\/\*|\*|#([^\[!]|$))/ && FILENAME !~ /\.(c|cpp|h|hpp)$/ { next }
            /^[[:space:]]*(\/\/|\/\*|\*( |\/|$))/ { next }
            /^#\[cfg\(test\)\]/ { armed = 1; tests++; next }
            armed && /^(pub(\([a-z]+\))? )?mod [a-z_]+ \{/ { inside = 1; armed = 0 }
            armed && !/^#/ { armed = 0; tests++; next }
            { if (test_file || inside || armed) tests++; else code++ }
            inside && /^}/ { inside = 0 }
            END { print code + 0, tests + 0 }' \
        | awk '{ code += $1; tests += $2 } END { print code + 0, tests + 0 }'
}

measure() {
    local room code tests all=0 all_tests=0
    for room in crates/*/ peers/ validation/; do
        read -r code tests < <(lines "$room")
        echo "lines ${room%/} $code"
        [[ $room != crates/* ]] || all=$((all + code))
        all_tests=$((all_tests + tests))
    done
    echo "lines crates $all"
    echo "lines tests $all_tests"
    echo "packages Cargo.lock $(grep -c '^\[\[package\]\]' Cargo.lock)"
    strip -o "$work/threadtoll" "$threadtoll"
    echo "kilobytes command $(($(stat -c %s "$work/threadtoll") / 1000))"
    "$threadtoll" survey --quick --simulated-machine 1 --quiet --out "$work/survey.jsonl" --html "$work/survey.html" >/dev/null
    echo "kilobytes page $(($(stat -c %s "$work/survey.html") / 1000))"
}

measure >"$work/now"
if [[ ${1:-} == --write ]]; then
    cp "$work/now" ci/size.txt
    exit
fi
[[ -z ${SECONDS_OF:-} ]] || cat "$SECONDS_OF"
awk '
    NR == FNR { limit[$1 " " $2] = $3; next }
    {
        key = $1 " " $2
        grown = !(key in limit) || $3 > limit[key] * 1.05
        printf "%-10s %-20s %7d  %7s%s\n", $1, $2, $3, key in limit ? limit[key] : "-", grown ? "  TOO LARGE" : ""
        wrong = wrong || grown
    }
    END {
        if (wrong) print "size.sh: grown by more than 5%; if that is worth it, run ci/size.sh --write and say why in the commit"
        exit wrong
    }' ci/size.txt "$work/now"
