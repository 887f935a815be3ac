package program

import (
	"fmt"
	"strings"
)

// A message that was sent when it was due. It took from the moment at which it was due, so nothing
// that delays either end is left out.
type delivery struct {
	dueNs, lateNs, receivedNs int64
}

func (d delivery) tookNs() int64 { return atLeast(0, d.receivedNs-d.dueNs) }

// The messages that the generator sent, received at these times.
func (g *generator) deliveries(received []int64) []delivery {
	all := make([]delivery, g.made)
	free := int64(0)
	for i := range all {
		due := g.schedule.dueNs[i]
		// Late after the moment at which it was due and the calls before it, less their stamps,
		// would have returned: a call that waits for room is not the generator's fault.
		ready := atLeast(free, due)
		all[i] = delivery{due, g.sent[i] - ready, received[i]}
		free = ready + atLeast(0, g.after[i]-g.sent[i]-g.stampNs)
	}
	return all
}

// CPU time of the process, less what generators spend between their send calls. The runtime's own
// threads are part of it: they wake those that keep theirs.
func busyNs(cpuNs int64, generators ...*generator) int64 {
	for _, g := range generators {
		sendingNs := int64(0)
		for i := 0; i < g.made; i++ {
			sendingNs += g.after[i] - g.sent[i]
		}
		cpuNs -= atLeast(0, g.cpuNs-sendingNs)
	}
	return atLeast(0, cpuNs)
}

// Appends the distributions of deliveries that count.
func distributions(out *strings.Builder, counted []delivery) {
	late := make([]int64, len(counted))
	for i, delivery := range counted {
		late[i] = delivery.lateNs
	}
	histogram(out, "count", tookNs(counted))
	histogram(out, "lateness", late)
}

func tookNs(all []delivery) []int64 {
	took := make([]int64, len(all))
	for i, delivery := range all {
		took[i] = delivery.tookNs()
	}
	return took
}

// Appends the number of messages, and how many were due and received between the first one that
// counts, after the lead, and the moment at which the last one was due.
func window(out *strings.Builder, sent int, all []delivery, lead int) {
	begin, last := all[lead].dueNs, all[len(all)-1].dueNs
	var due, received int64
	lastReceived := last
	for _, delivery := range all {
		if begin <= delivery.dueNs && delivery.dueNs < last {
			due++
		}
		if begin <= delivery.receivedNs && delivery.receivedNs < last {
			received++
		}
		lastReceived = atLeast(lastReceived, delivery.receivedNs)
	}
	fmt.Fprintf(out, "sent %d\nelapsed_ns %d\nwindow_ns %d\ndue %d\nreceived %d\n",
		sent, lastReceived-begin, atLeast(1, last-begin), atLeast(1, due), received)
}
