package peers;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import jdk.internal.vm.annotation.Contended;

/**
 * Rare important messages among those of chatty senders, in one queue. Every sender is an open loop
 * of its own. Chatty ones never sleep, as if they computed between two messages.
 */
final class Funnel implements Rehearsed {
    private static final Schedule.Pattern IMPORTANT = Schedule.openLoop(1e6, true);

    private final List<Generator> generators;
    /** The first of the senders; the others are important. */
    private final int chatty;
    private final Schedule.Pattern chattyPattern;
    private final Gathering gathering;
    private boolean quick;

    Funnel(Channel channel, int senders, int important, double ratePerS) {
        chatty = senders - important;
        chattyPattern = Schedule.openLoop(chatty * 1e9 / ratePerS, true);
        generators = IntStream.range(0, senders)
                .mapToObj(i -> new Generator(channel, Numbers.end(i), i >= chatty))
                .toList();
        gathering = new Gathering(channel, senders);
    }

    @Override
    public List<Runnable> parts() {
        var parts = new ArrayList<Runnable>(generators);
        parts.add(1, gathering);
        return parts;
    }

    @Override
    public void rehearse(boolean quick) {
        this.quick = quick;
    }

    @Override
    public long leastNs(long lengthNs, long seed) {
        return IntStream.range(0, generators.size())
                .mapToLong(i -> pattern(i).draw(lengthNs, seed).lastNs())
                .max()
                .orElseThrow();
    }

    private Schedule.Pattern pattern(int sender) {
        return sender < chatty ? chattyPattern : IMPORTANT;
    }

    @Override
    public void begin(long lengthNs, long seed) {
        int most = 0;
        for (int i = 0; i < generators.size(); i++) {
            Schedule.Pattern pattern = quick ? Schedule.QUICK : pattern(i);
            Schedule schedule = pattern.draw(lengthNs, seed ^ (long) i << 32);
            generators.get(i).begin(schedule, lengthNs);
            most += schedule.dueNs().length;
        }
        gathering.begin(most);
    }

    @Override
    public Answer end() {
        long[][] received = gathering.bySender(generators);
        List<Delivery> important = important(received);
        List<List<Delivery>> chats = IntStream.range(0, chatty)
                .mapToObj(i -> counted(i, received))
                .toList();
        long busyNs = gathering.work.cpuNs
                + generators.stream().mapToLong(Generator::busyNs).sum();
        Answer answer = Delivery.describe(important, 0, busyNs, gathering.count);
        answer.histogram("chatty", chats.stream()
                .flatMap(List::stream)
                .mapToLong(Delivery::tookNs));
        for (List<Delivery> chat : chats) {
            answer.line("mean_ns",
                    chat.stream().mapToLong(Delivery::tookNs).average().orElse(0));
        }
        return answer.line("checked", gathering.count);
    }

    /** Messages of all important senders that count, in the order in which they were due. */
    private List<Delivery> important(long[][] received) {
        return IntStream.range(chatty, generators.size())
                .mapToObj(i -> counted(i, received))
                .flatMap(List::stream)
                .sorted(Comparator.comparingLong(Delivery::due))
                .toList();
    }

    private List<Delivery> counted(int sender, long[][] received) {
        Generator generator = generators.get(sender);
        return generator.deliveries(received[sender])
                .subList(generator.schedule().lead(), generator.made());
    }

    @Override
    public double figure() {
        return Scenario.median(important(gathering.bySender(generators)).stream()
                .mapToDouble(Delivery::tookNs)
                .toArray());
    }

    /** Stamps messages and keeps them until each sender has ended. */
    @Contended
    private static final class Gathering extends ReceivingPart {
        private final int senders;
        private long[] stamps;
        private long[] messages;
        private int count;
        private int ended;

        Gathering(Channel channel, int senders) {
            super(channel);
            this.senders = senders;
        }

        void begin(int most) {
            stamps = new long[most];
            messages = new long[most];
        }

        @Override
        void beginBlock() {
            count = 0;
            ended = 0;
        }

        @Override
        public boolean take(long message) {
            long now = System.nanoTime();
            if (Numbers.isEnd(message)) {
                return ++ended < senders;
            }
            if (count < stamps.length) {
                stamps[count] = now;
                messages[count] = message;
            }
            count++;
            return true;
        }

        /** Returns when each sender's messages came, if none is missing or out of order. */
        long[][] bySender(List<Generator> generators) {
            long sent = generators.stream().mapToLong(Generator::made).sum();
            Scenario.verifyCount(count, sent);
            long[][] received = new long[senders][];
            long[] next = new long[senders];
            for (int i = 0; i < senders; i++) {
                received[i] = new long[generators.get(i).made()];
                next[i] = Numbers.end(i) + 1;
            }
            for (int i = 0; i < count; i++) {
                int sender = Numbers.sender(messages[i]);
                Scenario.verify(sender < senders && messages[i] == next[sender], WRONG);
                int nth = (int) (next[sender]++ - Numbers.end(sender) - 1);
                Scenario.verify(nth < received[sender].length, WRONG);
                received[sender][nth] = stamps[i];
            }
            return received;
        }
    }
}
