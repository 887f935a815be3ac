package program

import (
	"fmt"
	"strings"
)

const mostHops = 64

// An open loop through channels in a row, with relays between them.
type chain struct {
	openLoop
	relays []*relay
}

func readChain(r *request) func() scenario {
	hops := int(r.number("hops", 1, mostHops))
	r.word("arrivals", "uniform")
	pattern := uniform(r.gapNs())
	return func() scenario {
		channels := []Channel{r.open()}
		var relays []*relay
		for hop := 1; hop < hops; hop++ {
			channels = append(channels, r.open())
			relays = append(relays, &relay{from: channels[hop-1], to: channels[hop]})
		}
		return &chain{newOpenLoop(r, pattern, channels[0], channels[hops-1]), relays}
	}
}

// The threads in the order of the messages.
func (c *chain) parts() []func() {
	parts := []func(){c.generator.work}
	for _, relay := range c.relays {
		parts = append(parts, relay.work)
	}
	return append(parts, c.receiver.work)
}

func (c *chain) begin(block block) {
	c.openLoop.begin(block)
	for _, relay := range c.relays {
		relay.received = touched[int64](len(c.receiver.received))
	}
}

func (c *chain) end(cpuNs int64) (string, error) {
	for _, relay := range c.relays {
		if relay.count != c.generator.made {
			return "", fmt.Errorf("a relay had %d of %d messages", relay.count, c.generator.made)
		}
	}
	return c.answer(cpuNs, c.hops)
}

// Appends the times from each thread's stamp until the next one's.
func (c *chain) hops(out *strings.Builder) {
	lead, made := c.generator.schedule.lead, c.generator.made
	hop := func(before, after []int64) {
		took := make([]int64, 0, made-lead)
		for i := lead; i < made; i++ {
			took = append(took, atLeast(0, after[i]-before[i]))
		}
		histogram(out, "hop", took)
	}
	before := c.generator.sent
	for _, relay := range c.relays {
		hop(before, relay.received)
		before = relay.received
	}
	hop(before, c.receiver.received)
}

// Stamps messages on their way from one channel to the next; the receiver verifies them.
type relay struct {
	from, to Channel
	received []int64
	count    int
	_        padding
}

func (r *relay) work() {
	from, to, received, count := r.from, r.to, r.received, 0
	for {
		message := from.Receive()
		now := nanotime()
		to.Send(message)
		if message == end {
			break
		}
		if count < len(received) {
			received[count] = now
		}
		count++
	}
	r.count = count
}
