#!/usr/bin/env bash
# Checks the size of committed files: at most 300 KB each, and 2 MB for all results.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z | while IFS= read -rd '' file; do [[ -e $file ]] && printf '%s\0' "$file"; done \
    | xargs -0 stat --printf '%s %n\n' -- | awk '
    $1 > 300000 { printf "weight.sh: %s has %d bytes, more than 300,000\n", $2, $1; heavy = 1 }
    $2 ~ /^docs\/results\// { results += $1 }
    END {
        if (results > 2000000) { printf "weight.sh: docs/results has %d bytes, more than 2,000,000\n", results; heavy = 1 }
        exit heavy
    }' >&2
