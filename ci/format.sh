#!/usr/bin/env bash
# Checks formatting, the width of comments (100 columns), and the size of committed files.
set -euo pipefail
cd "$(dirname "$0")/.."
# Not `cargo fmt`, which does not see the modules that registries declare.
git ls-files -z '*.rs' | xargs -0 rustfmt --check --edition 2024
# rustfmt does not wrap comments. Rows of tables cannot be wrapped.
if git ls-files -z '*.rs' | LC_ALL=C.UTF-8 xargs -0 grep -HnP '^(?=\s*//).{101,}$' | grep -vP '//[/!]* \|'; then
    echo "format.sh: these comments are wider than 100 columns" >&2
    exit 1
fi
ci/weight.sh
