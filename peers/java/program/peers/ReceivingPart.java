package peers;

import jdk.internal.vm.annotation.Contended;

/** The work of a thread that receives, with its CPU time in each block. */
@Contended
abstract class ReceivingPart implements Runnable, Channel.Taker {
    final CpuTime work = new CpuTime();
    private final Channel channel;
    private Channel.Receiver receiver;

    ReceivingPart(Channel channel) {
        this.channel = channel;
    }

    @Override
    public final void run() {
        if (receiver == null) {
            receiver = channel.receiver();
        }
        beginBlock();
        work.begin();
        receiver.receive(this);
        work.end();
    }

    /** Called on the thread before its first message of a block. */
    abstract void beginBlock();
}
