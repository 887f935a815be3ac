/// Answers lines on standard input by lines on standard output, as docs/dev/peers.md says.
module program;

import core.sys.posix.unistd : _exit;
import std.algorithm : canFind, map;
import std.array : join, split;
import std.conv : to;
import std.exception : enforce;
import std.format : format;
import std.stdio : stdin, stdout;
import std.string : replace, strip;

import bench : Bench;
import clock : now;
import keys : Keys;
import registry : scenarios;
import scenario : Scenario;

/// A peer.
struct Queue
{
    string name;
    string version_;
    string sentence;
    /// Bytes of a bounded queue per message; 0 if the queue is unbounded.
    size_t slotBytes;
    bool powerOfTwo;
    /// Makes its scenarios, for each way of waiting.
    Maker[string] waits;
}

/// Makes a scenario; see `make`.
alias Maker = Scenario function(string scenario, size_t capacity);

/// Answers until the input ends. `compiler` is the one that the build script found.
void run(string compiler, string flags, Queue[] peers)
{
    Bench prepared;
    foreach (line; stdin.byLineCopy)
    {
        if (line.strip == "quit")
            break;
        string answer;
        try
            answer = answerTo(line.split, compiler, flags, peers, prepared);
        catch (Exception failure)
            answer = "error " ~ failure.msg.split.join(" ");
        stdout.write(answer, "\n");
        stdout.flush();
    }
    _exit(0);
}

private string answerTo(string[] words, string compiler, string flags, Queue[] peers,
    ref Bench prepared)
{
    enforce(words.length > 0, "an empty line is not a request");
    switch (words[0])
    {
    case "hello":
        return describe(compiler, flags, peers);
    case "prepare":
        forget(prepared);
        immutable began = now();
        prepared = prepare(words[1 .. $], peers);
        return format("ready warm_up_ms=%d", (now() - began) / 1_000_000);
    case "block":
        return block(words, prepared);
    default:
        throw new Exception(format("“%s” is not a request", words[0]));
    }
}

private string block(string[] words, ref Bench prepared)
{
    enforce(words.length == 2, "a block needs a length, as in `block 50000000`");
    immutable length = words[1].to!long;
    enforce(length >= 1, "a block lasts for 1 ns or more");
    enforce(prepared !is null, "nothing is prepared");
    scope (failure)
        forget(prepared);
    return prepared.run(length) ~ "end";
}

private void forget(ref Bench prepared)
{
    if (prepared !is null)
        prepared.close();
    prepared = null;
}

private Bench prepare(string[] words, Queue[] peers)
{
    enforce(words.length >= 3 && words[0] == "queue",
        "this program prepares queues only: `prepare queue NAME SCENARIO …`");
    Queue* queue;
    foreach (ref peer; peers)
        if (peer.name == words[1])
            queue = &peer;
    enforce(queue !is null, words[1] ~ " is not a peer of this program");
    auto keys = new Keys(words[3 .. $]);
    auto cpus = keys.cpus;
    auto wait = keys.text("wait");
    auto maker = wait in queue.waits;
    enforce(maker !is null, format("%s has no wait=%s", queue.name, wait));
    enforce(scenarios.canFind(words[2]),
        format("%s has no scenario %s", queue.name, words[2]));
    immutable capacity = queue.slotBytes > 0 ? keys.number("capacity", 1, 1 << 26) : 0;
    enforce(!queue.powerOfTwo || (capacity & (capacity - 1)) == 0,
        format("capacity=%d is impossible: %s takes powers of two", capacity, queue.name));
    keys.finish();
    auto bench = new Bench((*maker)(words[2], capacity), cpus);
    scope (failure)
        bench.close();
    bench.warmUp();
    return bench;
}

private string describe(string compiler, string flags, Queue[] peers)
{
    string one(Queue queue)
    {
        immutable bounded = queue.slotBytes > 0;
        auto slots = format(`,"slot_bytes":%d,"power_of_two":%s`,
            queue.slotBytes, queue.powerOfTwo);
        return `{"kind":"queue","name":` ~ quoted(queue.name)
            ~ `,"version":` ~ quoted(queue.version_)
            ~ `,"sentence":` ~ quoted(queue.sentence)
            ~ `,"scenarios":[` ~ scenarios.map!quoted.join(",")
            ~ `]` ~ (bounded ? slots : "")
            ~ `,"waits":[` ~ waitsOf(queue).map!quoted.join(",") ~ `]}`;
    }

    return `{"program":1,"language":"d","runtime":` ~ quoted(compiler)
        ~ `,"compiler":` ~ quoted(compiler) ~ `,"flags":` ~ quoted(flags)
        ~ `,"peers":[` ~ peers.map!one.join(",") ~ `]}`;
}

private string[] waitsOf(Queue queue)
{
    string[] found;
    foreach (wait; ["poll", "poll-backoff", "block"])
        if (wait in queue.waits)
            found ~= wait;
    return found;
}

private string quoted(string text)
{
    return `"` ~ text.replace(`\`, `\\`).replace(`"`, `\"`) ~ `"`;
}
