#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}/peers

command -v go >/dev/null || {
    echo "go-channels: Go (1.19 or later) is missing: apt install golang-go" >&2
    exit 3
}
mkdir -p "$target"
cd "$here"
# No libraries, so nothing is fetched.
export CGO_ENABLED=0 GOFLAGS=-mod=mod GOTOOLCHAIN=local
go build -trimpath -ldflags "-X 'main.flags=CGO_ENABLED=0 go build'" -o "$target/go-channels" .
