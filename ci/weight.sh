#!/usr/bin/env bash
# Checks the size of committed files: at most 300 KB each, and 1 MB per folder of results.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z | xargs -0 stat --printf '%s %n\n' -- | awk '
    $1 > 300000 { printf "weight.sh: %s has %d bytes, more than 300,000\n", $2, $1; heavy = 1 }
    split($2, part, "/") > 3 && part[1] "/" part[2] == "docs/results" { folder[part[3]] += $1 }
    END {
        for (name in folder)
            if (folder[name] > 1000000) {
                printf "weight.sh: docs/results/%s has %d bytes, more than 1,000,000\n", name, folder[name]
                heavy = 1
            }
        exit heavy
    }' >&2
