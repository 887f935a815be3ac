#!/usr/bin/env bash
# Profiles programs as people write and run them, and judges each first screen by what is true of
# the program. Cases live in folders: validation/field, and each FOLDER given, with the
# same layout (its README.md describes the format of cases and expectations). 40 minutes for all, on
# a machine with nothing else to do; some cases need root or packages, and are listed as not run
# without. Screens, records and logs are left in /tmp/threadtoll-field/out.
#
# wrong:  a sentence that must not be there, or a figure that excludes the truth
# partly: something is missing
# right:  neither
#
# Exit code 1 if one is wrong or fewer than 90% are right. THREADTOLL=FILE names an existing
# command. --judge judges what an earlier run left. --only picks cases, or single outputs with
# --judge.
#
# usage: profile-field.sh [--judge] [--only PATTERN] [FOLDER...]
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."

own=validation/field
scratch=/tmp/threadtoll-field
out=$scratch/out
seconds_per_case=900
least_right=90 # percent
first_screen=24 # lines

usage() {
    echo "usage: $0 [--judge] [--only PATTERN] [FOLDER...]" >&2
    exit 2
}

die() {
    echo "profile-field.sh: $*" >&2
    exit 2
}

only=${NAME:-} judge_only=0 folders=("$own")
while (($#)); do
    case $1 in
        --judge) judge_only=1 ;;
        --only) only=${2:-}; [[ -n $only ]] || usage; shift ;;
        -*) usage ;;
        *) [[ -d $1/cases ]] || die "$1 has no folder 'cases'"; folders+=("$(realpath "$1")") ;;
    esac
    shift
done

# What rules may call in a JQ expression.
read -r -d '' prelude <<'JQ' || true
def locks: .processes[].locks[];
def lock($name): first(locks | select(.name | test($name))) // null;
def top: [locks] | max_by(.queue_mean // 0);
JQ

# The words of a file that a rule's JQ expression yields: a number, a pair, or "missing". A schema
# that lacks a member is no reason to stop.
ask() {
    local json=$1 expression=$2 answer
    [[ -s $json ]] || { echo missing; return; }
    answer=$(jq -r "$prelude"'
        try (first('"$expression"') as $x
            | if ($x | type) == "number" then "\($x)"
              elif ($x | type) == "array" and ($x | length) == 2 then "\($x[0]) \($x[1])"
              else "missing" end)
        catch "missing"' "$json") || die "jq refuses $expression"
    echo "${answer:-missing}"
}

is_number() { [[ $1 =~ ^-?[0-9]+(\.[0-9]+)?$ ]]; }

below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0) }'; }

# The first text in files that a pattern matches.
found() {
    local regex=$1 code=0 text
    shift
    text=$(LC_ALL=C.UTF-8 grep -E -i -o -h -e "$regex" "$@") || code=$?
    ((code < 2)) || die "grep refuses $regex"
    echo "${text%%$'\n'*}"
}

# Judges one rule: says nothing, or "partly …" or "wrong …".
judge_rule() {
    local screen=$1 json=$2 kind=$3 rest=$4 low high expression answer from to
    case $kind in
        must | avoid | never) answer=$(found "$rest" "$screen" "$screen.folded") || exit 2 ;;
        title) answer=$(found "$rest" "$screen.title") || exit 2 ;;
    esac
    case $kind in
        title) [[ -n $answer ]] || echo "partly: title $rest" ;;
        must) [[ -n $answer ]] || echo "partly: must $rest" ;;
        avoid) [[ -z $answer ]] || echo "partly: avoid $rest, found: $answer" ;;
        never) [[ -z $answer ]] || echo "wrong: never $rest, found: $answer" ;;
        within)
            read -r low high expression <<<"$rest"
            is_number "$low" && is_number "$high" && [[ -n $expression ]] || die "no rule: $rest"
            answer=$(ask "$json" "$expression") || exit 2
            if ! is_number "$answer"; then
                echo "partly: missing: $expression"
            elif below "$answer" "$low" || below "$high" "$answer"; then
                echo "wrong: $answer is not within $low..$high: $expression"
            fi
            ;;
        covers)
            read -r low expression <<<"$rest"
            high=${low#*..} low=${low%..*}
            is_number "$low" && is_number "$high" && [[ -n $expression ]] || die "no rule: $rest"
            answer=$(ask "$json" "$expression") || exit 2
            read -r from to <<<"$answer"
            if [[ -z $to ]]; then
                echo "partly: missing: $expression"
            elif below "$to" "$low" || below "$high" "$from"; then
                echo "wrong: $from..$to excludes $low..$high: $expression"
            fi
            ;;
        *) die "no rule: $kind $rest" ;;
    esac
}

# Judges a screen and a record by the rules of files: prints the verdict, then what failed.
judge() {
    local screen=$1 json=$2 kind rest line failed='' verdict=right
    shift 2
    tr '\n' ' ' <"$screen" | tr -s ' ' >"$screen.folded"
    while read -r kind rest; do
        case $kind in '' | '#'* | case | record | section) continue ;; esac
        line=$(judge_rule "$screen" "$json" "$kind" "$rest") || exit 2
        failed+=${line:+$line$'\n'}
    done < <(cat "$@")
    if [[ $failed == *wrong:* ]]; then verdict=wrong; elif [[ -n $failed ]]; then verdict=partly; fi
    printf '%s\n%s' "$verdict" "$failed"
}

# A judge that cannot fail is worthless: the made-up screen is wrong, partly right and right.
check_judge() {
    local folder=$1 expected rules
    printf '%s\n' 'deadlock (PID 1) · 5 threads · 4 s · 350' '  samples' \
        'Locks: threads waited for them 80% of the time; job_lock' '  costs most.' '' \
        'Intervals: 95%. More: threadtoll show convoy' 'deadlock' | divide "$folder/screen"
    echo '{"processes":[{"time":{"lock_wait":0.8,"io":{}},"locks":[{"name":"job_lock",
        "queue_mean":3.9,"queue_mean_interval95":[3.8,4],"gain":null}]}]}' >"$folder/json"
    while IFS='|' read -r expected rules; do
        printf '%b\n' "$rules" >"$folder/rules"
        [[ $(judge "$folder/screen" "$folder/json" "$folder/rules" | head -1) == "$expected" ]] ||
            die "the judge does not find $rules $expected"
    done <<'RULES'
right|must ^LOCKS:\nnever ^not locks\n# a comment\n\nmust job_lock costs most
right|within 3 4 lock("job").queue_mean\ncovers 3.7..3.85 top.queue_mean_interval95
right|title PID 1\nnever convoy|deadlock|samples\nmust Intervals
partly|must ^deadlock\nmust ^locks
partly|avoid job_lock
partly|within 0 1 lock("job_lock").gain
partly|covers 0..1 lock("other").held_share_interval95
wrong|must ^locks\nnever costs most
wrong|must ^deadlock\nnever job_lock costs
wrong|within 0 1 lock("job_lock").queue_mean\nmust ^deadlock
wrong|covers 1..2 lock("job_lock").queue_mean_interval95
RULES
}

# The value of one of the words that say where an output comes from, or nothing.
word() { sed -n "s/^$2  *//p" "$1" | head -1; }

case_of() {
    local name
    name=$(word "$1" case)
    echo "${name:-$(basename "$1")}"
}

known() {
    local folder
    for folder in "${folders[@]}"; do
        [[ ! -f $folder/cases/$1/run.sh ]] || return 0
    done
    return 1
}

# Divides what a program printed: the first screen, up to the command that shows more, goes to a
# file, and its title to another. Title and command hold names of cases, which are no answer.
divide() {
    local screen=$1
    : >"$screen.title"
    awk -v most=$first_screen -v title="$screen.title" '
        NR > most { exit }
        NR == 1 && / · .*(thread|sample)/ { in_title = 1 }
        NR > 1 && !/^  / { in_title = 0 }
        in_title { print >title; next }
        sub(/ *More: .*/, "") { print; exit }
        { print }' >"$screen"
}

# Finds the record of an expectation: that of its name, or the newest of a pattern whose text
# matches.
record_of() {
    local glob regex file
    read -r glob regex <<<"$(word "$1" record)"
    [[ -n $glob ]] || glob=$(basename "$1")/p.jsonl
    while IFS= read -r file; do
        if [[ -z $regex ]] || head -c 20000 "$file" | grep -E -q -e "$regex"; then
            echo "$file"
            return
        fi
    done < <(compgen -G "$out/$glob" | xargs -r ls -t)
}

# Writes screen and record of an expectation into a folder; fails if one is missing.
gather() {
    local expectation=$1 folder=$2 name section record
    name=$(basename "$expectation") section=$(word "$expectation" section)
    record=$(record_of "$expectation")
    rm -f "$folder/json" "$folder/whole"
    : >"$folder/screen"
    if [[ -n $section ]]; then
        local log
        log=$out/$(case_of "$expectation").log
        [[ ! -f $log ]] || awk -v title="=== $section" '
            /^===/ { inside = index($0, title) == 1; next } inside' "$log" >"$folder/whole"
        [[ ! -s $folder/whole ]] || divide "$folder/screen" <"$folder/whole"
    elif [[ -z $(word "$expectation" record) && -s $out/$name/screen ]]; then
        divide "$folder/screen" <"$out/$name/screen"
    elif [[ -n $record ]]; then
        "$THREADTOLL" profile show --color never "$record" 2>/dev/null |
            divide "$folder/screen" || true
    fi
    if [[ -n $record ]]; then
        "$THREADTOLL" profile show --json "$record" >"$folder/json" 2>/dev/null || true
        jq empty "$folder/json" 2>/dev/null || rm -f "$folder/json"
    fi
    # A refusal has no record, and says so by having only a section.
    [[ -s $folder/screen && (-n $record || (-n $section && -z $(word "$expectation" record))) ]]
}

builds() {
    local name=$1 others other
    # Some cases run programs of others.
    others=$(grep -E -o '(cases|\.\.)/[a-z0-9_]+' "$scratch/cases/$name/run.sh" | sed 's|.*/||' || true)
    for other in $others "$name"; do
        [[ -f $scratch/cases/$other/build.sh && -z ${built[$other]:-} ]] || continue
        built[$other]=yes
        (cd "$scratch/cases/$other" && bash build.sh) >"$out/$other.build" 2>&1 </dev/null ||
            built[$other]=no
    done
    [[ ${built[$name]:-yes} == yes ]]
}

run_case() {
    local name=$1 expectation record
    for expectation in "$own"/expect/*; do
        [[ $(case_of "$expectation") == "$name" ]] || continue
        rm -rf "${out:?}/$(basename "$expectation")"
        record=$(word "$expectation" record)
        [[ -z $record ]] || { compgen -G "$out/${record%% *}" || true; } | xargs -r rm -f
    done
    if ! builds "$name"; then
        reasons[$name]="does not build ($out/$name.build)"
        return
    fi
    echo "running $name" >&2
    (cd "$scratch/cases" && timeout -k 10 $seconds_per_case bash "$name/run.sh") \
        >"$out/$name.log" 2>&1 </dev/null || true
}

if [[ -z ${THREADTOLL:-} ]]; then
    cargo build --release --quiet
    THREADTOLL=${CARGO_TARGET_DIR:-target}/release/threadtoll
fi
THREADTOLL=$(realpath "$THREADTOLL")
export THREADTOLL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check_judge "$work"
mkdir -p "$out" "$scratch/cases"

declare -A built=() reasons=()
if ((!judge_only)); then
    for folder in "${folders[@]}"; do
        # Each folder has a harness of its own, and its cases may run each other's programs.
        for part in "$folder"/*/; do
            name=$(basename "$part")
            [[ $name != expect ]] || continue
            [[ $name == cases ]] || rm -rf "${scratch:?}/$name"
            cp -r "$part" "$scratch/"
            chmod -R u+w "$scratch/$name"
        done
        for path in "$folder"/cases/*/; do
            name=$(basename "$path")
            [[ -z $only || $name =~ $only ]] || continue
            run_case "$name"
        done
    done
fi

declare -A count=([right]=0 [partly]=0 [wrong]=0)
unjudged=()
printf '%-28s %s\n' output judgement
for expectation in "$own"/expect/*; do
    name=$(basename "$expectation") from=$(case_of "$expectation")
    [[ $name != _every ]] || continue
    picked=$from
    ((!judge_only)) || picked="$from $name"
    [[ -z $only || $picked =~ $only ]] || continue
    ((judge_only)) || known "$from" || continue
    if [[ -n ${reasons[$from]:-} ]]; then
        unjudged+=("$name: ${reasons[$from]}")
    elif grep -qs 'cannot be preloaded' "$out/$name/prog.err"; then
        unjudged+=("$name: a library that it preloads is missing ($out/$name/prog.err)")
    elif ! gather "$expectation" "$work"; then
        log=$out/$from.log
        if [[ -f $log ]] && known "$from"; then unjudged+=("$name: no screen or no record ($log)"); fi
    else
        judged=$(judge "$work/screen" "$work/json" "$expectation" "$own/expect/_every")
        verdict=${judged%%$'\n'*}
        count[$verdict]=$((count[$verdict] + 1))
        printf '%-28s %s\n' "$name" "$verdict"
        printf '%s\n' "$judged" | sed -n '2,$s/^/    /p' | grep . || true
    fi
done
for line in "${unjudged[@]}"; do
    printf '%-28s not run: %s\n' "${line%%: *}" "${line#*: }"
done

all=$((count[right] + count[partly] + count[wrong]))
echo
echo "$all judged: ${count[right]} right, ${count[partly]} partly, ${count[wrong]} wrong;" \
    "${#unjudged[@]} not run"
((all > 0 && count[wrong] == 0 && count[right] * 100 >= all * least_right))
