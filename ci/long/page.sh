#!/usr/bin/env bash
# Opens pages in headless Chromium, from a file as a reader would. Fails on any console message.
# (The page's own policy refuses requests that leave the page, and scripts that it does not name,
# and the console then says so.) Leaves a screenshot of each page.
#
# usage: page.sh [--size WIDTHxHEIGHT] [--dark] [--shots DIR] PAGE.html...
set -euo pipefail

size=1280x4000
dark=()
shots=.
while [[ ${1:-} == --* ]]; do
    case $1 in
        --size) size=$2; shift 2 ;;
        --dark) dark=(--blink-settings=preferredColorScheme=0); shift ;;
        --shots) shots=$2; shift 2 ;;
        *) echo "page.sh: unknown option $1" >&2; exit 2 ;;
    esac
done
if [[ $# -eq 0 ]]; then
    echo "usage: page.sh [--size WIDTHxHEIGHT] [--dark] [--shots DIR] PAGE.html..." >&2
    exit 2
fi

browser=
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then browser=$name; break; fi
done
if [[ -z $browser ]]; then
    echo "page.sh: skipped, because no chromium is installed (Debian: apt-get install chromium)"
    exit 0
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$shots"
failed=0
for page in "$@"; do
    page=$(realpath "$page")
    name=$(basename "$page" .html)
    common=(--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
        --disable-component-update --disable-sync --disable-default-apps --hide-scrollbars
        --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr
        --virtual-time-budget=15000 --window-size="${size/x/,}" "${dark[@]}")
    timeout 120 "$browser" "${common[@]}" --user-data-dir="$scratch/$name" \
        --screenshot="$(realpath "$shots")/$name.png" "file://$page" >/dev/null 2>"$scratch/console" || {
        echo "page.sh: $name: $browser failed"; tail -5 "$scratch/console"; failed=1; continue
    }
    if grep -E ':CONSOLE' "$scratch/console"; then
        echo "page.sh: $name: the console is not silent"; failed=1
    fi
    echo "page.sh: $name: $(stat -c %s "$page") bytes, $(realpath "$shots")/$name.png"
done
exit "$failed"
