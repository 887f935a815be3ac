package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import jdk.internal.vm.annotation.Contended;

/** A sender that sends messages when they are due. */
@Contended
final class Generator implements Runnable {
    /** It gives up after this multiple of a block's length: the queue is saturated. */
    private static final int PATIENCE = 2;
    /** About the time by which a sleep ends late. */
    private static final long WAKE_NS = 150_000;

    private final Channel channel;
    private final long end;
    private final boolean naps;
    private final CpuTime work = new CpuTime();
    private Channel.Sender sender;
    private Schedule schedule;
    private long patienceNs;
    private long stampNs;
    private long[] due;
    private long[] sent;
    private long[] after;
    private int made;

    /**
     * @param end which its messages follow
     * @param naps true if it sleeps while its next message is not due for long
     */
    Generator(Channel channel, long end, boolean naps) {
        this.channel = channel;
        this.end = end;
        this.naps = naps;
    }

    /** Called before it runs. */
    void begin(Schedule schedule, long lengthNs) {
        this.schedule = schedule;
        patienceNs = PATIENCE * Math.max(lengthNs, schedule.lastNs());
        stampNs = Clock.costOfReading();
        due = schedule.dueNs().clone();
        sent = new long[due.length];
        after = new long[due.length];
    }

    @Override
    public void run() {
        if (sender == null) {
            sender = channel.sender();
        }
        int least = schedule.lead() + Math.max(2, schedule.burst());
        work.begin();
        made = generate(sender, end, naps, due, sent, after, least, patienceNs);
        work.end();
    }

    private static int generate(
            Channel.Sender sender,
            long end,
            boolean naps,
            long[] due,
            long[] sent,
            long[] after,
            int least,
            long patienceNs) {
        long begin = System.nanoTime() + Scenario.AHEAD_NS;
        for (int i = 0; i < due.length; i++) {
            due[i] += begin;
        }
        long until = begin + patienceNs;
        long now = System.nanoTime();
        int number = 0;
        // While it is late there is one stamp a message: that after a call is before the next.
        while (number < due.length && (now <= until || number < least)) {
            while (now < due[number]) {
                if (naps && due[number] - now > 2 * WAKE_NS) {
                    LockSupport.parkNanos(due[number] - now - WAKE_NS);
                }
                now = System.nanoTime();
            }
            sent[number] = now;
            sender.send(end + number + 1);
            now = System.nanoTime();
            after[number++] = now;
        }
        sender.send(end);
        return number;
    }

    /** Messages of the block that it has sent. */
    int made() {
        return made;
    }

    Schedule schedule() {
        return schedule;
    }

    /** CPU time of its send calls; between them it waits, which a program would not. */
    long busyNs() {
        long sendingNs = 0;
        for (int i = 0; i < made; i++) {
            sendingNs += after[i] - sent[i];
        }
        return Math.min(sendingNs, work.cpuNs);
    }

    /** Its messages, given when each was received. */
    List<Delivery> deliveries(long[] received) {
        var all = new ArrayList<Delivery>(made);
        long free = 0;
        for (int i = 0; i < made; i++) {
            long ready = Math.max(due[i], free);
            free = ready + Math.max(0, after[i] - sent[i] - stampNs);
            all.add(new Delivery(due[i], ready, sent[i], after[i], received[i]));
        }
        return all;
    }
}
