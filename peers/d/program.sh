# Builds a program from the common protocol and a peer: sourced by its build.sh, with NAME (of the
# executable) and `here` set.
root=$(cd "$here/../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}/peers
flags=(-O2 -release)

command -v ldc2 >/dev/null || {
    echo "$NAME: the D compiler ldc2 is missing: apt install ldc" >&2
    exit 3
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf %s "$(ldc2 --version | sed -n '1s/.*compiler (\(.*\)):*/LDC \1/p')" >"$work/compiler.txt"
printf %s "ldc2 ${flags[*]}" >"$work/flags.txt"
mkdir -p "$target"
# The working directory holds the object files.
(cd "$work" && ldc2 "${flags[@]}" -J"$work" -of="$work/$NAME" "$here"/../program/*.d "$here"/*.d)
mv "$work/$NAME" "$target/$NAME"
