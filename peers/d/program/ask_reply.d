/// `ask-reply`: a message through one channel, its echo through the other.
module ask_reply;

import std.algorithm : clamp, max;
import std.array : Appender;
import std.exception : enforce;
import std.format : formattedWrite;

import clock : now;
import crew : Part;
import figures : histogram;
import scenario : end, Padding, Scenario, wrongMessage;

/// One message is under way at a time. The first half of a block has a stamp for each round trip,
/// the second half one for each stretch of about 20 µs.
final class AskReply(Channel) : Scenario
{
    private enum mostStamped = 1 << 20;
    private enum stretchNs = 20_000.0;

    private Asker asker;
    private Answerer answerer;

    this(Channel there, Channel back)
    {
        asker = new Asker(there, back);
        answerer = new Answerer(there, back);
    }

    override Part[] parts()
    {
        return [asker, answerer];
    }

    override void begin(long lengthNs)
    {
        asker.lengthNs = lengthNs;
    }

    override string finish()
    {
        enforce((asker.wrong | answerer.wrong) == 0, wrongMessage);
        enforce(asker.number == answerer.number, wrongMessage);
        Appender!string text;
        histogram(text, "count", asker.times[0 .. asker.stamped]);
        text.formattedWrite("mean_ns %f\nchecked %d\n", asker.meanNs, asker.stamped + asker.trips);
        return text[];
    }

    override double figure()
    {
        return asker.meanNs;
    }

    private static final class Asker : Part
    {
        private Padding before;
        Channel there, back;
        long lengthNs;
        long[] times;
        size_t stamped;
        ulong number, wrong;
        long trips;
        double meanNs;
        private Padding after;

        this(Channel there, Channel back)
        {
            this.there = there;
            this.back = back;
            times = new long[](mostStamped);
        }

        override void enter()
        {
            back.enterReceiver();
        }

        override void work()
        {
            auto there = this.there, back = this.back;
            auto number = this.number, wrong = this.wrong;
            immutable begin = now();
            immutable half = begin + lengthNs / 2, until = begin + lengthNs;
            long last = begin;
            for (stamped = 0; stamped == 0 || last < half && stamped < mostStamped; stamped++)
            {
                there.send(++number);
                wrong |= back.receive() ^ number;
                immutable time = now();
                times[stamped] = max(0, time - last);
                last = time;
            }
            immutable trip = double(last - begin) / stamped;
            immutable perStretch = cast(long) clamp(stretchNs / trip, 1, 1000);
            immutable begun = last;
            for (trips = 0; trips == 0 || last < until; trips += perStretch)
            {
                foreach (_; 0 .. perStretch)
                {
                    there.send(++number);
                    wrong |= back.receive() ^ number;
                }
                last = now();
            }
            there.send(end);
            wrong |= back.receive() ^ end;
            meanNs = double(last - begun) / trips;
            this.number = number;
            this.wrong = wrong;
        }
    }

    private static final class Answerer : Part
    {
        private Padding before;
        Channel there, back;
        ulong number, wrong;
        private Padding after;

        this(Channel there, Channel back)
        {
            this.there = there;
            this.back = back;
        }

        override void enter()
        {
            there.enterReceiver();
        }

        override void work()
        {
            auto there = this.there, back = this.back;
            auto number = this.number, wrong = this.wrong;
            for (;;)
            {
                immutable message = there.receive();
                // Verified after the answer has left: the asker does not wait for that.
                back.send(message);
                if (message == end)
                    break;
                wrong |= message ^ ++number;
            }
            this.number = number;
            this.wrong = wrong;
        }
    }
}
