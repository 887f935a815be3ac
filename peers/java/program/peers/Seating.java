package peers;

import java.util.stream.IntStream;

/** The CPUs of a scenario's parts, by their place in the list of a request. */
enum Seating {
    /** The second part has the second CPU to itself; the others, senders, share the rest. */
    RECEIVER_ALONE {
        @Override
        int place(int part, int cpus) {
            if (part == 1) {
                return 1;
            }
            int nth = (part == 0 ? 0 : part - 1) % (cpus - 1);
            return nth == 0 ? 0 : nth + 1;
        }
    },
    /** The first part has the first CPU to itself; the others, receivers, share the rest. */
    SENDER_ALONE {
        @Override
        int place(int part, int cpus) {
            return part == 0 ? 0 : 1 + (part - 1) % (cpus - 1);
        }
    },
    /** Parts that follow each other have different CPUs. */
    IN_TURN {
        @Override
        int place(int part, int cpus) {
            return part % cpus;
        }
    };

    /** A part's place among two CPUs or more. */
    abstract int place(int part, int cpus);

    /** The CPU of each part; none if there are no CPUs. */
    int[] cpus(int[] cpus, int parts) {
        return switch (cpus.length) {
            case 0 -> cpus;
            case 1 -> IntStream.generate(() -> cpus[0]).limit(parts).toArray();
            default -> IntStream.range(0, parts).map(i -> cpus[place(i, cpus.length)]).toArray();
        };
    }
}
