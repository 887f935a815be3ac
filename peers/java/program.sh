# Builds a program from the common protocol and the peers of one folder: sourced by its build.sh,
# with NAME (of the executable), GROUP (the class that lists the peers) and `here` set.
#
# The executable is a jar behind a shell script. It has the libraries' classes in it, so it is one
# file and needs nothing but a JVM.
root=$(cd "$here/../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}/peers

missing() {
    echo "$NAME: $1" >&2
    exit 3
}
command -v javac >/dev/null && command -v jar >/dev/null ||
    missing "a JDK (17 or later) is missing: apt install openjdk-17-jdk-headless"
major=$(javac -version 2>&1 | sed 's/^javac \([0-9]*\).*/\1/')
[ "$major" -ge 17 ] || missing "javac $major is too old: apt install openjdk-17-jdk-headless"
command -v taskset >/dev/null || missing "taskset is missing: apt install util-linux"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/libraries" "$work/classes"
if [ -f "$here/pom.xml" ]; then
    command -v mvn >/dev/null || missing "Maven is missing: apt install maven"
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$work/libraries" >"$work/maven" 2>&1 ||
        missing "Maven could not fetch the library: $(grep -m 1 ERROR "$work/maven" | cut -c 1-200)"
    for library in "$work"/libraries/*.jar; do
        (cd "$work/classes" && jar --extract --file "$library")
    done
    # Modules and signatures are those of the library's own jar.
    rm -rf "$work"/classes/module-info.class "$work"/classes/META-INF
fi
javac -nowarn -Xlint:-options --add-exports java.base/jdk.internal.vm.annotation=ALL-UNNAMED \
    -cp "$work/classes" -d "$work/classes" "$here"/../program/peers/*.java "$here"/*.java
jar --create --file "$work/$NAME.jar" --main-class peers.Program -C "$work/classes" .

# Heap enough for a queue that grows for a block, and a young generation that lasts for several.
# A store of a reference marks a card, and the cards of 32 KiB of heap share a cache line. Cards that
# are marked already must not be written again: otherwise, two threads that use one queue would write
# that line with each message.
# Warnings of the JVM go to standard error, not among the answers.
cat >"$work/$NAME" <<HEADER
#!/bin/sh
exec java -XX:+UseParallelGC -XX:+UseCondCardMark -Xms512m -Xmx3g -Xmn256m -XX:-UsePerfData \\
    -XX:-RestrictContended -XX:+DisplayVMOutputToStderr -jar "\$0" $GROUP
HEADER
cat "$work/$NAME.jar" >>"$work/$NAME"
chmod +x "$work/$NAME"
mkdir -p "$target"
mv "$work/$NAME" "$target/$NAME"
