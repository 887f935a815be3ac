package program

const mostSenders = 64

// Goroutines that measure a queue, a block at a time.
type scenario interface {
	// The work of each goroutine in a block.
	parts() []func()
	// Called before the parts run.
	begin(block block)
	// Called after the parts have run, with the CPU time of the process meanwhile; returns the lines
	// of the answer, without `end`.
	end(cpuNs int64) (string, error)
	// The figure that levels off in a warm-up: a time per message of the last block.
	figure() float64
}

type block struct {
	lengthNs int64
	seed     uint64
	// A warm-up has no time for rare messages, nor for many at once.
	warmsUp bool
}

// The pattern that was asked for, except in a warm-up.
func (b block) paced(asked pattern, warmUpGapNs float64) pattern {
	if b.warmsUp {
		return uniform(warmUpGapNs)
	}
	return asked
}

// A kind of scenario, as requests name it.
type kind struct {
	name    string
	seating seating
	// Fewest and most senders.
	senders [2]uint64
	// True if the queue has to hold messages while nobody receives.
	fills bool
	// True if a sender has to sleep for less than a millisecond, which goroutines cannot.
	naps bool
	// Reads the further keys. Nothing is opened before all of them are known to be right.
	read func(r *request) (open func() scenario)
}

var (
	oneSender   = [2]uint64{1, 1}
	manySenders = [2]uint64{1, mostSenders}
	twoSenders  = [2]uint64{floodSenders, floodSenders}
)

var kinds = []kind{
	{name: "ask-reply", seating: receiverAlone, senders: oneSender, read: readAskReply},
	{name: "stream", seating: receiverAlone, senders: manySenders, read: readStream},
	{name: "open-loop", seating: receiverAlone, senders: oneSender, read: readOpenLoop},
	{name: "burst", seating: receiverAlone, senders: oneSender, read: readBurst},
	{name: "workers", seating: senderAlone, senders: oneSender, read: readWorkers},
	{name: "chain", seating: inTurn, senders: oneSender, read: readChain},
	{name: "funnel", seating: receiverAlone, senders: manySenders, read: readFunnel},
	{name: "depth", seating: receiverAlone, senders: oneSender, fills: true, read: readDepth},
	{name: "flood", seating: receiverAlone, senders: twoSenders, naps: true, read: readFlood},
}

func kindOf(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}

func (k *kind) suits(queue *Queue) bool {
	return !(k.fills && queue.HoldsNone) && (!k.naps || queue.Threads)
}
