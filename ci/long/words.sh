#!/usr/bin/env bash
# Draws 40 comments of production code and 20 texts that the command prints, at random but the same
# for the same seed, each comment with the line of code below it. Each should be clear to an engineer
# who reads it once, and knows the field but not the code.
#
# usage: words.sh --seed N
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ $# -eq 2 && $1 == --seed && $2 =~ ^[0-9]+$ ]] || { sed -n '/^# usage/s/^# //p' "$0" >&2; exit 2; }
seed=$2

sources() {
    git ls-files 'crates/*/src/*.rs' 'peers/rust/src/*.rs' \
        | grep -vE '/(tests|models|twin)(/|\.rs$)|/(live|recorded)\.rs$'
}

# Each function prints lines of a place, a tab, and the text: a paragraph of a comment, with the code
# below it after another tab …
comments() {
    sources | xargs awk '
        function paragraph() { if (text != "") { texts[++count] = text; places[count] = place }; text = "" }
        function end(code) {
            paragraph()
            for (i = 1; i <= count; i++) print places[i] "\t" texts[i] "\t" code
            count = 0
        }
        FNR == 1 { end(""); tests = code = safety = 0 }
        /^#\[cfg\(test\)\]/ { tests = 1 }
        !tests && match($0, /^[ \t]*\/\/[\/!]?( |$)/) {
            line = substr($0, RLENGTH + 1)
            if (line ~ /^```/) code = !code
            if (line ~ /^SAFETY/) safety = 1
            if (code || safety || line == "" || line ~ /^(#|\||```)/) { paragraph(); next }
            if (text == "") place = FILENAME ":" FNR
            text = text (text == "" ? "" : " ") line
            next
        }
        /^[ \t]*#\[/ { next }
        { safety = 0; sub(/^[ \t]+/, ""); end($0) }
        END { end("") }'
}

# … a finding of the list, or a string of the code (not those that say when a finding is printed).
sentences() {
    awk -F ' \\| ' '/^\| / && !/^\| (sentence|warning|---)/ { print FILENAME ":" FNR "\t" substr($1, 3) }' \
        crates/cli/tests/command/sentences/all.md
    sources | grep -vE '^(crates/(threadtoll|model)|peers)/|/(sentences|warnings)\.rs$' | xargs awk '
        FNR == 1 { tests = 0 }
        /^#\[cfg\(test\)\]/ { tests = 1 }
        tests || /^[ \t]*\/\// { next }
        { sub(/^[ \t]+/, ""); code = code $0 }
        sub(/\\$/, "", code) { next }
        match(code, /"([^"\\]|\\.)*"/) { print FILENAME ":" FNR "\t" substr(code, RSTART + 1, RLENGTH - 2) }
        { code = "" }'
}

draw() {
    awk -F '\t' -v n="$1" -v seed="$seed" '
        BEGIN { srand(seed) }
        split($2, words, " ") < 6 { next }
        { at = ++found <= n ? found : int(rand() * found) + 1; if (at <= n) kept[at] = $2 "\n    " $1 ($3 == "" ? "" : ": " $3) }
        END { for (i = 1; i in kept; i++) printf "%2d. %s\n", i, kept[i] }' | fold -s -w 100
}

echo "== 40 comments"
comments | draw 40
echo "== 20 texts"
sentences | draw 20
