#!/usr/bin/env bash
# Builds the documentation, with warnings denied, and checks that links of pages lead to a file.
set -euo pipefail
cd "$(dirname "$0")/.."
broken=$(git ls-files '*.md' | while read -r page; do
    { grep -oP '\]\(\K(?!https?:|#)[^)# ]+' "$page" || true; } | while read -r link; do
        [[ -e $(dirname "$page")/$link ]] || echo "docs.sh: $page: there is no $link"
    done
done)
[[ -z $broken ]] || { echo "$broken" >&2; exit 1; }
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
