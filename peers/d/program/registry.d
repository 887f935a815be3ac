/// The scenarios by name.
module registry;

import std.array : array;
import std.range : generate, take;

import arrivals : mostMessages, Pattern;
import ask_reply : AskReply;
import chain : Chain;
import depth : Depth;
import flood : Flood;
import funnel : Funnel;
import keys : Keys;
import paced : Paced;
import scenario : Scenario;
import stream : Stream;
import workers : Workers;

/// The use of a queue.
struct Usage
{
    /// Messages that a bounded queue holds.
    size_t capacity;
    /// Senders that it may have.
    size_t mostSenders;
}

string[] scenariosOf(bool manySenders)
{
    auto names = ["ask-reply", "stream", "open-loop", "burst", "workers", "chain", "depth"];
    return manySenders ? names ~ ["funnel", "flood"] : names;
}

/// Makes one of these scenarios for a channel.
Scenario make(Channel)(string scenario, Usage usage, Keys keys)
{
    Channel open()
    {
        return new Channel(usage.capacity);
    }

    Channel[] several(string key)
    {
        return generate(&open).take(keys.number(key, 1, 64)).array;
    }

    switch (scenario)
    {
    case "ask-reply":
        return new AskReply!Channel(open(), open());
    case "stream":
        return new Stream!Channel(open(), keys.number(1, "senders", 1, usage.mostSenders));
    case "open-loop":
        return new Paced!Channel(open(), pattern(keys, "uniform", "poisson"));
    case "burst":
        immutable burst = keys.number("burst", 1, mostMessages / 3);
        immutable gapNs = keys.number("gap_ns", 1, 60_000_000_000);
        return new Paced!Channel(open(), Pattern(gapNs, false, burst));
    case "workers":
        return new Workers!Channel(several("receivers"));
    case "chain":
        return new Chain!Channel(several("hops"), pattern(keys, "uniform"));
    case "funnel":
        immutable senders = keys.number(1, "senders", 1, usage.mostSenders);
        immutable important = keys.number("important", 1, senders);
        return new Funnel!Channel(open(), senders, important, pattern(keys, "poisson"));
    case "depth":
        return new Depth!Channel(usage.capacity, keys.number("depth", 1, 1 << 24));
    case "flood":
        keys.number("senders", 2, 2);
        return new Flood!Channel(open(), pattern(keys, "poisson"));
    default:
        assert(false, scenario);
    }
}

private Pattern pattern(Keys keys, string[] arrivals...)
{
    immutable gapNs = 1e9 / keys.number("rate_per_s", 1, 100_000_000);
    return Pattern(gapNs, keys.choice("arrivals", arrivals) == "poisson");
}
