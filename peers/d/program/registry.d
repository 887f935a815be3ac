/// The scenarios by name.
module registry;

import ask_reply : AskReply;
import scenario : Scenario;
import stream : Stream;

immutable scenarios = ["ask-reply", "stream"];

/// Makes one of these scenarios for a channel that holds this many messages, if it is bounded.
Scenario make(Channel)(string scenario, size_t capacity)
{
    Channel open()
    {
        return new Channel(capacity);
    }

    if (scenario == "ask-reply")
        return new AskReply!Channel(open(), open());
    return new Stream!Channel(open());
}
