package program

// Goroutines that measure a queue, a block at a time. Of the two parts, the second one runs on the
// second CPU.
type scenario interface {
	// The work of each goroutine in a block.
	parts() []func()
	// Called before the parts run.
	begin(lengthNs int64)
	// Called after the parts have run; returns the lines of the answer, without `end`.
	end() (string, error)
	// The figure that levels off in a warm-up: a time per message of the last block.
	figure() float64
}

func (r *request) scenario(name string) scenario {
	if name == "ask-reply" {
		return newAskReply(r.open(), r.open())
	}
	return newStream(r.open())
}
