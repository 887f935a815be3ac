/// std.concurrency: each thread has a mailbox, a list of messages under a mutex.
module concurrency;

import core.atomic : pause;
import core.time : Duration;
import std.concurrency : OnCrowding, receiveOnly, receiveTimeout, setMaxMailboxSize,
    std_send = send, thisTid, ThreadInfo, Tid;
import std.format : format;

import program : Queue, run;
import registry : make;

private enum Wait
{
    block,
    poll,
    backoff
}

private final class Mailbox(Wait wait, bool bounded = false)
{
    private size_t capacity;
    private Tid receiver;
    private ubyte[128] between;
    private ulong found;
    private ubyte[128] after;

    this(size_t capacity)
    {
        this.capacity = capacity;
    }

    void enterReceiver()
    {
        // A thread without a mailbox gets a new one.
        ThreadInfo.thisInfo.ident = Tid.init;
        receiver = thisTid;
        static if (bounded)
            setMaxMailboxSize(receiver, capacity, OnCrowding.block);
    }

    void send(ulong message)
    {
        std_send(receiver, message);
    }

    ulong receive()
    {
        static if (wait == Wait.block)
            return receiveOnly!ulong;
        else
        {
            while (!receiveTimeout(Duration.zero, &take))
                static if (wait == Wait.backoff)
                    foreach (_; 0 .. 100)
                        pause();
            return found;
        }
    }

    // Not a literal, which would be allocated for each message.
    private void take(ulong message)
    {
        found = message;
    }
}

/// Memory for a node of the list, which has a Variant in it.
private enum slotBytes = 64;

void main()
{
    auto release = format("%d.%03d", __VERSION__ / 1000, __VERSION__ % 1000);
    run(import("compiler.txt"), import("flags.txt"), [
        Queue("d-concurrency", release, "std.concurrency: send and receive", 0, false, [
            "poll": &make!(Mailbox!(Wait.poll)),
            "poll-backoff": &make!(Mailbox!(Wait.backoff)),
            "block": &make!(Mailbox!(Wait.block))
        ]),
        Queue("d-concurrency-bounded", release,
            "std.concurrency, a mailbox that blocks senders when it is full", slotBytes,
            false, ["block": &make!(Mailbox!(Wait.block, true))])
    ]);
}
