/// The work of a thread that receives from a channel.
module receiving_part;

import crew : Part;
import memory : Padding;

/// Subclasses end with padding, too.
abstract class ReceivingPart(Channel) : Part
{
    private Padding before;
    protected Channel channel;

    this(Channel channel)
    {
        this.channel = channel;
    }

    override void enter()
    {
        channel.enterReceiver();
    }
}
