#!/usr/bin/env bash
# Talks to a program as docs/peers.md says, and checks each answer: the description, a block of each
# row that it describes, refusals, and that it ends when it should.
#
#   protocol.sh PROGRAM [CPU_A,CPU_B [PEER…]]
#
# Prints a line for each row, and ends with code 1 if anything was wrong. Needs python3.
set -euo pipefail
exec python3 -u /dev/fd/3 "$@" 3<<'P'
import json, os, queue, re, subprocess, sys, threading, time

path = sys.argv[1]
cpus = sys.argv[2] if len(sys.argv) > 2 else ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
faults = 0


def fault(text):
    global faults
    faults += 1
    print("FAULT " + text)


class Program:
    def __init__(self):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, bufsize=1)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self, seconds=30):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise SystemExit("FAULT no answer within %d s" % seconds)
        if line is None:
            raise SystemExit("FAULT it ended by itself")
        return line

    def ask(self, line, seconds=30):
        self.say(line)
        return self.hear(seconds)

    def block(self, length):
        """Lines of an answer up to `end`, or its only line if that is an error. What the program
        says of its settling is left out."""
        lines = [self.ask("block " + length, 120)]
        end = re.compile(r"end( settling_ns=\d+)?")
        while not end.fullmatch(lines[-1]) and not lines[0].startswith("error "):
            lines.append(self.hear())
        if end.fullmatch(lines[-1]):
            lines[-1] = "end"
        return lines

    def ends(self, how):
        """Checks that it ends with code 0 within a second, and says nothing more."""
        begun = time.monotonic()
        if how == "quit":
            self.say("quit")
        else:
            self.process.stdin.close()
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return fault("%s: it did not end within 5 s" % how)
        took = time.monotonic() - begun
        if code != 0:
            fault("%s: it ended with code %d" % (how, code))
        if took > 1:
            fault("%s: it took %.2f s to end" % (how, took))


def expect(condition, text):
    if not condition:
        raise ValueError(text)


def pairs(lines, count):
    """The next lines as values and times; checks that values ascend."""
    found = [tuple(map(int, lines.pop(0).split())) for _ in range(count)]
    expect(all(len(pair) == 2 for pair in found), "a line does not have two numbers")
    values = [value for value, _ in found]
    expect(values == sorted(set(values)), "values do not ascend")
    expect(all(times > 0 for _, times in found), "a value occurs no times")
    return found


def number(lines, name, kind=int):
    expect(lines, "%s is missing" % name)
    word, _, value = lines.pop(0).partition(" ")
    expect(word == name, "%s is there instead of %s" % (word, name))
    decimal = r"\d+" if kind is int else r"\d+(\.\d+)?"
    expect(re.fullmatch(decimal, value), "%s is %s" % (name, value))
    return kind(value)


def total(found):
    return sum(times for _, times in found)


def middle(found):
    left = total(found) / 2
    for value, times in found:
        left -= times
        if left <= 0:
            return value


def check(scenario, lines, asked):
    """Checks a block's answer to a request with these numbers; returns its figure in words."""
    lines = list(lines)
    if scenario in ("ask-reply", "latency"):
        found = pairs(lines, number(lines, "count"))
        mean = number(lines, "mean_ns", float)
        checked = number(lines, "checked")
        expect(found, "no round trip was stamped")
        expect(checked > total(found), "%d checked, but %d stamped" % (checked, total(found)))
        expect(mean > 0, "a round trip takes no time")
        figure = "median %d ns, mean %.0f ns, %d checked" % (middle(found), mean, checked)
    elif scenario == "stream":
        count = number(lines, "count")
        rate = number(lines, "rate_per_s", float)
        checked = number(lines, "checked")
        expect(count > 0 and rate > 0, "nothing was sent")
        expect(checked == count, "%d checked of %d" % (checked, count))
        figure = "%.3f M/s, %d checked" % (rate / 1e6, checked)
    elif scenario == "workers":
        count, elapsed = number(lines, "count"), number(lines, "elapsed_ns")
        shared = number(lines, "shared")
        received = []
        while lines and lines[0].startswith("received "):
            received.append(number(lines, "received"))
        checked = number(lines, "checked")
        expect(count > 0 and elapsed > 0, "nothing was sent")
        expect(checked == count == sum(received), "%d checked of %d" % (checked, count))
        expect(len(received) == asked["receivers"], "%d receivers" % len(received))
        expect(shared in (0, 1), "shared is %d" % shared)
        figure = "%.3f M/s, %s" % (count / elapsed * 1e3, " + ".join(map(str, received)))
    elif scenario == "depth":
        count = number(lines, "count")
        send, receive = number(lines, "send_ns", float), number(lines, "receive_ns", float)
        elapsed, checked = number(lines, "elapsed_ns"), number(lines, "checked")
        expect(count == 128 * min(128, asked["depth"]), "%d calls are timed" % count)
        expect(checked == count + asked["depth"], "%d checked" % checked)
        expect(send > 0 and receive > 0 and elapsed > 0, "a call takes no time")
        figure = "%.1f and %.1f ns a call" % (send, receive)
    elif scenario == "flood":
        found = pairs(lines, number(lines, "count"))
        elapsed, sent = number(lines, "elapsed_ns"), number(lines, "sent")
        checked = number(lines, "checked")
        expect(0 < total(found) < sent == checked, "%d checked of %d" % (checked, sent))
        expect(sum(value * times for value, times in found) <= elapsed, "calls longer than the block")
        figure = "median %d ns, %d lines, %d sent" % (middle(found), total(found), sent)
    elif scenario == "pool":
        tasks = asked["tasks"]
        count = number(lines, "count")
        elapsed = number(lines, "elapsed_ns")
        queued = number(lines, "queue_on_entry_mean", float)
        checked = number(lines, "checked")
        expect(count == tasks == checked, "%d tasks, %d checked" % (count, checked))
        figure = "%.1f ms, queue %.2f, %d checked" % (elapsed / 1e6, queued, checked)
    else:
        found = pairs(lines, number(lines, "count"))
        late = pairs(lines, number(lines, "lateness"))
        busy = number(lines, "busy_ns") if lines and lines[0].startswith("busy_ns ") else None
        sent, elapsed, window, due, received = (
            number(lines, name) for name in ("sent", "elapsed_ns", "window_ns", "due", "received"))
        figure = "median %d ns, %d sent" % (middle(found), sent)
        if scenario == "burst":
            first, last, drain = (
                number(lines, name, float) for name in ("first_ns", "last_ns", "drain_ns"))
            bursts, empty = number(lines, "bursts"), number(lines, "found_empty")
            expect(first <= last and empty <= bursts and bursts > 0, "its bursts do not fit")
            figure += ", first %.0f, last %.0f, drained after %.0f" % (first, last, drain)
        elif scenario == "chain":
            hops = [pairs(lines, number(lines, "hop")) for _ in range(asked["hops"])]
            expect(all(total(hop) == total(found) for hop in hops), "a hop has other messages")
            figure += ", hops " + " + ".join(str(middle(hop)) for hop in hops)
        elif scenario == "funnel":
            chatty = pairs(lines, number(lines, "chatty"))
            means = [number(lines, "mean_ns", float)
                     for _ in range(asked["senders"] - asked["important"])]
            expect(bool(chatty) == any(means), "means without messages, or messages without means")
            figure += ", chatty %s ns" % (middle(chatty) if chatty else "-")
        checked = number(lines, "checked")
        expect(total(found) == total(late), "deliveries and lateness have different numbers")
        expect(0 < total(found) < sent, "the first tenth counts, or nothing does")
        expect(checked == sent, "%d checked of %d" % (checked, sent))
        expect(due <= total(found) and received <= sent, "more due or received than sent")
        expect(window <= elapsed, "the window is longer than the block")
        figure += "" if busy is None else ", %.0f ns of CPU each" % (busy / sent)
    expect(lines == ["end"], "after the figures comes %r" % lines)
    return figure


def measure(program, title, request, scenario):
    asked = {key: int(value) for key, value in re.findall(r" (\w+)=(\d+)(?= |$)", request)}
    ready = program.ask(request, 60)
    if ready.split(" ")[0] != "ready":
        return fault("%s: %s" % (title, ready))
    for length in ("20ms", "50ms"):
        lines = program.block(length)
        try:
            figure = check(scenario, lines, asked)
        except (ValueError, IndexError) as why:
            return fault("%s: %s: %s" % (title, why, lines[:1]))
    print("%-48s %s (%s)" % (title, figure, ready))


def requests(peer):
    """Every row of a description: title, request, scenario."""
    name = peer["name"]
    if peer["kind"] == "mechanism":
        yield name, "prepare latency %s cpus=%s payload_bytes=8" % (name, cpus), "latency"
    elif peer["kind"] == "contention":
        for work, tasks in (("sleep", 100), ("clock", 20)):
            yield ("%s pool %s" % (name, work),
                   "prepare contention pool threads=8 hold_ns=500000 think_ns=2000000 "
                   "tasks=%d work=%s cpus=%s" % (tasks, work, cpus), "pool")
    else:
        loads = {"ask-reply": ["", " cpus="], "stream": [""],
                 "open-loop": [" rate_per_s=10000 arrivals=uniform",
                               " rate_per_s=200000 arrivals=poisson"],
                 "burst": [" burst=64 gap_ns=100000"],
                 "workers": [" receivers=1", " receivers=3"],
                 "chain": [" hops=%d rate_per_s=10000 arrivals=uniform" % hops for hops in (1, 3)],
                 "funnel": [" important=1 rate_per_s=100000 arrivals=poisson"],
                 "depth": [" depth=1", " depth=1000"],
                 "flood": [" rate_per_s=10000 arrivals=poisson"]}
        for scenario in peer["scenarios"]:
            for wait in peer["waits"]:
                shapes = {"flood": [(1, 2)], "funnel": [(1, 1), (1, 3)]}.get(scenario, [(1, 1)])
                if scenario == "stream":
                    shapes += [(1, 2)] if peer["senders"] == "many" else []
                    shapes += [(64, 1)] if peer["batches"] else []
                for load in loads[scenario]:
                    for batch, senders in shapes:
                        pinned = "" if load == " cpus=" else " cpus=" + cpus
                        capacity = " capacity=2048" if peer["capacity"] == "bounded" else ""
                        words = "%s%s wait=%s%s batch=%d senders=%d payload_bytes=8 seed=7" % (
                            pinned, load, wait, capacity, batch, senders)
                        title = "%s %s %s%s%s%s" % (
                            name, scenario, wait, load.replace(" cpus=", " free"),
                            " x%d" % batch if batch > 1 else "",
                            " from %d" % senders if senders > 1 else "")
                        request = "prepare queue %s %s%s" % (name, scenario, words)
                        yield title, request, scenario


program = Program()
hello = json.loads(program.ask("hello"))
for member, kind in (("program", int), ("language", str), ("runtime", str), ("compiler", str),
                     ("flags", str), ("peers", list)):
    if not isinstance(hello.get(member), kind):
        fault("hello: %s is missing" % member)
for peer in hello["peers"]:
    needed = {"queue": ["scenarios", "senders", "capacity", "waits", "batches"],
              "mechanism": ["class"], "contention": ["scenario"]}[peer["kind"]]
    for member in ["name", "version", "sentence"] + needed:
        if member not in peer:
            fault("hello: %s of %s is missing" % (member, peer.get("name")))
print("%(language)s, %(runtime)s, %(flags)s" % hello)

before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
word, clock = program.ask("clock").split(" ")
if word != "clock" or not before <= int(clock) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC):
    fault("clock: it is not CLOCK_MONOTONIC")

wanted = sys.argv[3:] or [peer["name"] for peer in hello["peers"]]
everything = [request for peer in hello["peers"] if peer["name"] in wanted
              for request in requests(peer)]
if not everything:
    raise SystemExit("it has none of these peers")
one = everything[0][1]
refused = ["", "frobnicate", "prepare", "prepare queue",
           "prepare queue nobody ask-reply cpus= wait=poll",
           "prepare latency nobody cpus= payload_bytes=8", "prepare something else cpus=",
           "block", "block soon", "block 50ms", one + " colour=red", one + " nothing",
           one.replace("cpus=" + cpus, "cpus=0,99999"), one.replace("cpus=" + cpus, "cpus=x"),
           one.replace("payload_bytes=8", "payload_bytes=9").replace("threads=8", "threads=0")]
for peer in hello["peers"]:
    if peer["kind"] == "queue":
        row = "prepare queue %s ask-reply cpus= " % peer["name"]
        wait = "wait=" + peer["waits"][0]
        refused += [row + "wait=never", row.replace("ask-reply", "juggling") + wait,
                    row + wait + " capacity=0", row + wait + " senders=0"]
for request in refused:
    answer = program.ask(request)
    if not answer.startswith("error ") or len(answer) < 12:
        fault("%r is answered by %r" % (request, answer))
print("%d impossible requests are refused" % len(refused))

for title, request, scenario in everything:
    measure(program, title, request, scenario)

# A prepare replaces the one before, an error ends it.
program.ask("prepare queue nobody ask-reply cpus= wait=poll")
if not program.ask("block 20ms").startswith("error "):
    fault("a block follows a prepare that failed")
threads = "/proc/%d/task" % program.process.pid
children = [open("%s/%s/children" % (threads, thread)).read() for thread in os.listdir(threads)]
if any(children):
    fault("it has left processes behind: %s" % children)
program.ends("quit")
if (rest := program.lines.get(timeout=5)) is not None:
    fault("after quit it said %r" % rest)

for how in ("quit", "end of input"):
    program = Program()
    # The last row, so that sleeping ends are met too.
    for request in (everything[0], everything[-1]):
        program.ask(request[1], 60)
    program.say("block 60s")
    time.sleep(0.3)
    program.ends(how)
print("it ends within a second of quit and of the end of input, in the middle of a block")
short = subprocess.run([path], input="hello\n", capture_output=True, text=True, timeout=10)
if short.returncode != 0 or json.loads(short.stdout) != hello:
    fault("the answer to the last line before the end of input is missing")

print("%d rows, %d faults" % (len(everything), faults))
sys.exit(1 if faults else 0)
P
