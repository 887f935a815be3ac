#!/usr/bin/env bash
# Is everything formatted, no comment wider than 100 columns, and nothing too heavy?
set -euo pipefail
cd "$(dirname "$0")/.."
# By name: `cargo fmt` does not see modules that a macro declares.
git ls-files -z '*.rs' | xargs -0 rustfmt --check
# rustfmt leaves comments as they are. Rows of tables cannot be wrapped.
if git ls-files -z '*.rs' | LC_ALL=C.UTF-8 xargs -0 grep -HnP '^(?=\s*//).{101,}$' | grep -vP '//[/!]* \|'; then
    echo "format.sh: these comments are wider than 100 columns" >&2
    exit 1
fi
ci/weight.sh
