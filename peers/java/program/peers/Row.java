package peers;

import static peers.Group.quoted;

import java.util.List;
import java.util.stream.Collectors;

/** A peer, with the properties that decide how it can be prepared. */
public sealed interface Row {
    String name();

    String describe();

    /** Opens a queue as {@code prepare} asks for it. */
    interface Opener {
        Channel open(Usage usage);
    }

    /**
     * The use of a queue.
     *
     * @param way how its ends wait: {@code poll}, {@code poll-backoff} or {@code block}
     * @param capacity messages that a bounded queue holds
     * @param batch largest batch, 1 for single messages
     */
    record Usage(String way, int capacity, int batch) {
        /** Number of pause hints after an attempt that failed. */
        public int pauses() {
            return way.equals("poll-backoff") ? 100 : 0;
        }
    }

    /**
     * A queue.
     *
     * @param slotBytes memory for a message of a bounded queue, 0 if it is unbounded: the reference
     *     and the object, with compressed references
     * @param fans opens the queue with several receivers that each get every message; null if it
     *     cannot
     */
    record Queue(
            String name,
            String version,
            String sentence,
            int slotBytes,
            boolean powerOfTwo,
            boolean batches,
            List<String> waits,
            Opener opener,
            Fan.Opener fans)
            implements Row {
        /** A queue whose messages go to one receiver each. */
        public Queue(
                String name,
                String version,
                String sentence,
                int slotBytes,
                boolean powerOfTwo,
                boolean batches,
                List<String> waits,
                Opener opener) {
            this(name, version, sentence, slotBytes, powerOfTwo, batches, waits, opener, null);
        }

        public String describe() {
            boolean bounded = slotBytes > 0;
            String slots = ",\"slot_bytes\":" + slotBytes + ",\"power_of_two\":" + powerOfTwo;
            return "{\"kind\":\"queue\"," + head(this.name, version, sentence)
                    + ",\"scenarios\":[\"ask-reply\",\"stream\""
                    + (fans != null ? ",\"broadcast\"]" : "]")
                    + (bounded ? slots : "")
                    + ",\"waits\":[" + waits.stream().map(Group::quoted).collect(Collectors.joining(","))
                    + "],\"batches\":" + batches + "}";
        }
    }

    /**
     * Two channels, one in each direction, that hold one message.
     *
     * @param kind its class: {@code spin}, {@code poll} or {@code sleep}
     */
    record Mechanism(
            String name,
            String version,
            String sentence,
            String kind,
            Opener there,
            Opener back)
            implements Row {
        public String describe() {
            return "{\"kind\":\"mechanism\"," + head(name, version, sentence)
                    + ",\"class\":" + quoted(kind) + "}";
        }
    }

    /** A pool of threads that share a lock. */
    record Pool(String name, String version, String sentence) implements Row {
        public String describe() {
            return "{\"kind\":\"contention\",\"scenario\":\"pool\","
                    + head(name, version, sentence) + "}";
        }
    }

    private static String head(String name, String version, String sentence) {
        return "\"name\":" + quoted(name) + ",\"version\":" + quoted(version)
                + ",\"sentence\":" + quoted(sentence);
    }
}
