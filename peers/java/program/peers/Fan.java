package peers;

import java.util.List;

/** A queue under test that gives every message to each of its receivers. */
public interface Fan {
    /** Makes the sending end; called once on the sender's thread. */
    Channel.Sender sender();

    /** The receiving ends. */
    List<Channel.Receiver> receivers();

    /** Opens a queue as {@code prepare} asks for it. */
    interface Opener {
        /** In a diamond, the last receiver gets a message after all others have handled it. */
        Fan open(Row.Usage usage, int receivers, boolean diamond);
    }
}
