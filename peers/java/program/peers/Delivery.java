package peers;

import java.util.List;

/**
 * The stamps of a message that was sent when it was due. Its delivery lasts from the moment at
 * which it was due, so nothing that delays either end is left out.
 *
 * @param ready when it was due and the calls before it, less their stamps, would have returned
 * @param after when its send call had returned
 */
record Delivery(long due, long ready, long sent, long after, long received) {
    long tookNs() {
        return Math.max(0, received - due);
    }

    /** Not from when it was due: a call that waits for room is not the generator's fault. */
    long lateNs() {
        return sent - ready;
    }

    /**
     * Adds the lines of an open loop, up to {@code received}.
     *
     * @param all in the order in which they were due; the first {@code lead} do not count
     * @param sent messages of the block, of all senders
     */
    static Answer describe(List<Delivery> all, int lead, long busyNs, long sent) {
        List<Delivery> counted = all.subList(lead, all.size());
        long begin = counted.get(0).due;
        long end = counted.get(counted.size() - 1).due;
        long dueWithin = 0;
        long receivedWithin = 0;
        long last = end;
        for (Delivery one : all) {
            dueWithin += one.due >= begin && one.due < end ? 1 : 0;
            receivedWithin += one.received >= begin && one.received < end ? 1 : 0;
            last = Math.max(last, one.received);
        }
        return new Answer()
                .histogram("count", counted.stream().mapToLong(Delivery::tookNs))
                .histogram("lateness", counted.stream().mapToLong(Delivery::lateNs))
                .line("busy_ns", busyNs)
                .line("sent", sent)
                .line("elapsed_ns", last - begin)
                .line("window_ns", Math.max(1, end - begin))
                .line("due", Math.max(1, dueWithin))
                .line("received", receivedWithin);
    }
}
