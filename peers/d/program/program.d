/// Answers lines on standard input by lines on standard output, as docs/peers.md says.
module program;

import core.sync.condition : Condition;
import core.sync.mutex : Mutex;
import core.sys.posix.unistd : _exit;
import core.thread : Thread;
import core.time : msecs;
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

/// Time for the answers to earlier lines once the input is over.
private enum grace = 500.msecs;
private enum quit = "quit";

/// A peer.
struct Queue
{
    string name;
    string version_;
    string sentence;
    /// Memory for a message of a bounded queue, 0 if it is unbounded.
    size_t slotBytes;
    bool powerOfTwo;
    /// Makes its scenarios, for each way of waiting.
    Maker[string] waits;
}

/// Makes a scenario; see `make`.
alias Maker = Scenario function(string scenario, size_t capacity);

/// Answers until the input is over. The compiler is what its build script found.
void run(string compiler, string flags, Queue[] peers)
{
    auto lines = new Lines;
    auto reader = new Thread({ read(lines); });
    reader.isDaemon = true;
    reader.start();
    Bench prepared;
    for (string line; (line = lines.take()) != quit;)
    {
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

private void read(Lines lines)
{
    foreach (line; stdin.byLineCopy)
    {
        if (line.strip == quit)
            break;
        lines.add(line.strip);
    }
    lines.add(quit);
    Thread.sleep(grace);
    // Ends a block that is under way, too: its threads may spin or hang.
    _exit(0);
}

private final class Lines
{
    private Mutex mutex;
    private Condition added;
    private string[] lines;

    this()
    {
        mutex = new Mutex;
        added = new Condition(mutex);
    }

    void add(string line)
    {
        synchronized (mutex)
        {
            lines ~= line;
            added.notify();
        }
    }

    string take()
    {
        synchronized (mutex)
        {
            while (lines.length == 0)
                added.wait();
            auto line = lines[0];
            lines = lines[1 .. $];
            return line;
        }
    }
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
    enforce(words.length == 2, "a block needs a length, as in `block 50ms`");
    immutable length = nanoseconds(words[1]);
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

private long nanoseconds(string text)
{
    size_t digits;
    while (digits < text.length && "0123456789.".canFind(text[digits]))
        digits++;
    double length;
    try
        length = text[0 .. digits].to!double * unit(text[digits .. $]);
    catch (Exception)
        throw new Exception(format("“%s” is not a duration", text));
    enforce(length >= 1 && length <= 3600e9, "a block lasts from 1ns to an hour");
    return cast(long) length;
}

private double unit(string name)
{
    switch (name)
    {
    case "ns":
        return 1;
    case "us":
        return 1e3;
    case "ms":
        return 1e6;
    case "s":
        return 1e9;
    default:
        throw new Exception("no unit");
    }
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
