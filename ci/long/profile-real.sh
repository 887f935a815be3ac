#!/usr/bin/env bash
# Profiles programs that people run, under load, and keeps the first screen and the file of each in
# a folder. docs/results/epyc-2cpu/profiles says what was found. About six minutes; Debian's
# packages:
#
#   apt-get install memcached redis-server redis-tools libsqlite3-dev stress-ng sysbench xz-utils \
#       python3 default-jdk-headless golang-go mariadb-server-core mariadb-client-core
#
# THREADTOLL=FILE names an existing command, PROGRAMS=FOLDER existing programs of
# validation, PYTHONS='FILE…' more interpreters. What is not installed is left out with
# a line. Servers listen on the loopback or on a socket file, with their data in a temporary folder,
# and are ended by their process IDs.
#
# usage: profile-real.sh [--seconds N] [--only TEXT] [--out FOLDER]
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=10 only='' out=target/profile-real
while (($#)); do
    case $1 in
        --seconds) seconds=$2 ;;
        --only) only=$2 ;;
        --out) out=$2 ;;
        *) echo "usage: $0 [--seconds N] [--only TEXT] [--out FOLDER]" >&2; exit 2 ;;
    esac
    shift 2
done
if [[ -z ${THREADTOLL:-} ]]; then
    cargo build --release --quiet
    THREADTOLL=$(realpath "${CARGO_TARGET_DIR:-target}/release/threadtoll")
fi
if [[ -z ${PROGRAMS:-} ]]; then
    validation/build.sh
    PROGRAMS=validation/target/programs
fi
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d)
sources=validation/real
# Programs outlast the profile by this many seconds, should this script be killed.
lasts=$((seconds + 8))

started=()
end_started() {
    # In reverse: the load before its server.
    for ((i = ${#started[@]} - 1; i >= 0; i--)); do
        kill "${started[i]}" 2>/dev/null || true
        wait "${started[i]}" 2>/dev/null || true
    done
    started=()
}
trap 'end_started; rm -rf "$work"' EXIT

start() {
    timeout --foreground "$((lasts + 5))" "$@" >"$work/log" 2>&1 </dev/null &
    started+=($!)
}

# The program itself, below the timeout that was started last.
pid_of_last() {
    local pid
    for _ in {1..50}; do
        pid=$(pgrep -P "${started[-1]}") && break
        sleep 0.1
    done
    echo "$pid"
}

look() {
    local name=$1 pid=$2
    rm -f "$out/$name.jsonl"
    "$THREADTOLL" profile --seconds "${seconds}s" --out "$out/$name.jsonl" --html "$out/$name.html" \
        -p "$pid" >"$out/$name.txt" || echo "$name: not profiled"
    end_started
    echo "== $name"
    cat "$out/$name.txt"
}

wanted() { [[ $1 == *"$only"* ]]; }

have() {
    local name=$1 tool
    shift
    for tool; do
        if ! command -v "$tool" >/dev/null; then
            echo "== $name: left out, because $tool is not installed"
            return 1
        fi
    done
}

if wanted memcached && have memcached memcached cc; then
    cc -O2 -pthread "$sources/load.c" -o "$work/load"
    start memcached -u "$(id -un)" -l 127.0.0.1 -p 21211 -t 4
    server=$(pid_of_last)
    sleep 1
    start "$work/load" 21211 32 "$lasts"
    sleep 2
    look memcached "$server"
fi

redis() {
    local name=$1 threads=$2
    start redis-server --port 26379 --bind 127.0.0.1 --io-threads "$threads" \
        --io-threads-do-reads yes --save '' --dir "$work"
    server=$(pid_of_last)
    sleep 1
    if [[ $name != *-idle ]]; then
        start redis-benchmark -p 26379 -c 50 -n 1000000000 -t get,set -P 16 -q
        sleep 1
    fi
    look "$name" "$server"
}
if wanted redis && have redis redis-server redis-benchmark; then
    redis redis 4
    redis redis-idle 4
fi

if wanted sqlite && have sqlite cc; then
    if cc -O2 -g -pthread "$sources/sqlite.c" -o "$work/sqlite" -lsqlite3 2>/dev/null; then
        start "$work/sqlite" "$work/rows.db" 4 "$lasts"
        sleep 1
        look sqlite "$(pid_of_last)"
    else
        echo "== sqlite: left out, because libsqlite3-dev is not installed"
    fi
fi

if wanted stress-ng && have stress-ng stress-ng; then
    start stress-ng --mutex 1 --mutex-procs 8 --timeout "$lasts" --quiet
    # The stressor is a process of its own, below the one that started it.
    parent=$(pid_of_last)
    sleep 1
    look stress-ng "$(pgrep -P "$parent")"
fi

if wanted sysbench && have sysbench sysbench; then
    start sysbench mutex --threads=8 --mutex-num=1 --mutex-locks=100000000 --mutex-loops=2000 run
    sleep 1
    look sysbench-mutex "$(pid_of_last)"
    start sysbench threads --threads=8 --thread-locks=2 --time="$lasts" run
    sleep 1
    look sysbench-threads "$(pid_of_last)"
fi

if wanted xz && have xz xz; then
    start sh -c "exec xz -T2 -6 --block-size=4MiB < '$THREADTOLL'"
    sleep 0.5
    look xz "$(pid_of_last)"
fi

for python in python3 ${PYTHONS:-}; do
    name=python-$(basename "$(dirname "$(dirname "$(command -v "$python")")")")
    [[ $python == python3 ]] && name=python
    if wanted "$name" && have "$name" "$python"; then
        start "$python" "$sources/gil.py" 4 "$lasts"
        sleep 1
        look "$name" "$(pid_of_last)"
    fi
done

if wanted java && have java java javac; then
    javac -d "$work" "$sources/Locks.java"
    for lock in synchronized ReentrantLock; do
        start java -cp "$work" Locks "$lock" 4 "$lasts"
        sleep 2
        look "java-$lock" "$(pid_of_last)"
    done
fi

if wanted go && have go go; then
    go build -o "$work/locks-go" "$sources/locks.go"
    start "$work/locks-go" 4 "$lasts"
    sleep 1
    look go "$(pid_of_last)"
fi

for lock in std-mutex parking-lot; do
    if wanted "rust-$lock"; then
        start "$PROGRAMS/shares-rust" --threads 4 --locks "$lock" --hold 1ms --think 3ms --work sleep
        sleep 1
        look "rust-$lock" "$(pid_of_last)"
    fi
done

if wanted mariadb && have mariadb mariadbd mariadb mariadb-install-db; then
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$work/mariadb" --skip-test-db \
        --auth-root-authentication-method=normal >"$work/log" 2>&1
    socket=$work/mariadb.sock
    lasts=$((lasts + 10))
    start mariadbd --no-defaults --user="$(id -un)" --datadir="$work/mariadb" --socket="$socket" \
        --skip-networking --innodb-buffer-pool-size=64M --default-time-zone=SYSTEM
    server=$(pid_of_last)
    for _ in {1..50}; do
        mariadb -u root -S "$socket" -e 'select 1' >/dev/null 2>&1 && break
        sleep 0.2
    done
    mariadb -u root -S "$socket" -e "create database shop; use shop; create table orders
        (id int primary key, placed timestamp not null, state char(1)) engine=innodb;
        insert into orders select seq, '2017-07-01' + interval seq second, 'A'
        from seq_1_to_10000"
    query="select count(*) from shop.orders
        where hour(placed) < 12 and dayofyear(placed) < 200 and state = 'A';"
    query=${query//$'\n'/}
    for _ in {1..8}; do
        start sh -c "yes \"$query\" | exec mariadb -u root -S '$socket'"
    done
    sleep 2
    look mariadb "$server"
    lasts=$((seconds + 8))
fi

for rate in 15000 100000; do
    if wanted "allocator-$rate"; then
        start "$PROGRAMS/allocator-c" --rate "$rate" --held 0.02
        sleep 1
        look "allocator-$rate" "$(pid_of_last)"
    fi
done
