/// Answers lines on standard input by lines on standard output, as docs/peers.md says.
module program;

import core.sync.condition : Condition;
import core.sync.mutex : Mutex;
import core.sys.posix.unistd : _exit;
import core.thread : Thread;
import core.time : msecs;
import std.algorithm : canFind, map;
import std.array : array, join, split;
import std.conv : to;
import std.exception : enforce;
import std.format : format;
import std.stdio : stdin, stdout;
import std.string : replace, strip;

import crew : now;
import scenario;

/// Time for the answers to earlier lines once the input is over.
private enum grace = 500.msecs;
private enum quit = "quit";

/// A peer.
struct Queue
{
    string name;
    string version_;
    string sentence;
    bool manySenders;
    /// Memory for a message of a bounded queue, 0 if it is unbounded.
    size_t slotBytes;
    bool powerOfTwo;
    /// Makes its scenarios, for each way of waiting.
    Maker[string] waits;
}

/// Makes a scenario; see `make`.
alias Maker = Scenario function(string scenario, Usage usage, Keys keys);

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
    case "clock":
        return format("clock %d", now());
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

/// The key=value words of a request. Whatever is left at the end was not understood.
final class Keys
{
    private string[string] left;

    this(string[] words)
    {
        foreach (word; words)
        {
            auto parts = word.split("=");
            enforce(parts.length == 2 && parts[0].length > 0,
                format("“%s” is not of the form key=value", word));
            enforce(parts[0] !in left, parts[0] ~ " is given twice");
            left[parts[0]] = parts[1];
        }
    }

    string text(string key)
    {
        enforce(key in left, key ~ " is missing");
        auto value = left[key];
        left.remove(key);
        return value;
    }

    long number(string key, long least, long most)
    {
        auto value = text(key);
        long found = -1;
        try
            found = value.to!long;
        catch (Exception)
        {
        }
        enforce(found >= 0 && value[0] != '+', format("%s=%s is not a number", key, value));
        enforce(found >= least && found <= most,
            format("%s=%d is impossible: it is from %d to %d", key, found, least, most));
        return found;
    }

    long number(long otherwise, string key, long least, long most)
    {
        return key in left ? number(key, least, most) : otherwise;
    }

    /// CPUs for the threads; none if they are not pinned.
    int[] cpus()
    {
        auto value = text("cpus");
        if (value.length == 0)
            return null;
        try
            return value.split(",").map!(word => int(word.to!ushort)).array;
        catch (Exception)
            throw new Exception(format("cpus=%s is not a list of CPUs", value));
    }

    void finish()
    {
        foreach (key; left.byKey)
            throw new Exception(key ~ " does not apply here");
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
    Usage usage;
    if (queue.slotBytes > 0)
        usage.capacity = keys.number("capacity", 1, 1 << 26);
    enforce(!queue.powerOfTwo || (usage.capacity & (usage.capacity - 1)) == 0,
        format("capacity=%d is impossible: %s takes powers of two", usage.capacity, queue.name));
    immutable many = words[2] == "stream" && queue.manySenders;
    usage.senders = keys.number(1, "senders", 1, many ? 64 : 1);
    keys.number(1, "batch", 1, 1);
    keys.number(8, "payload_bytes", 8, 8);
    immutable seed = keys.number(0, "seed", 0, long.max);
    auto bench = new Bench((*maker)(words[2], usage, keys), seed, cpus);
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
            ~ `,"scenarios":["ask-reply","stream","open-loop","burst"],"senders":`
            ~ quoted(queue.manySenders ? "many" : "one")
            ~ `,"capacity":` ~ quoted(bounded ? "bounded" : "unbounded")
            ~ (bounded ? slots : "")
            ~ `,"waits":[` ~ waitsOf(queue).map!quoted.join(",") ~ `],"batches":false}`;
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
