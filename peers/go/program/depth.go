package program

import (
	"fmt"
	"sync/atomic"
)

const (
	// Turns of each end in a block.
	turns = 128
	// Most messages between two stamps.
	mostInTurn = 128
	// Enough for a warm-up: filling a deep queue takes a second.
	warmUpDepth = 1000
	// Looks at the turn, one after the other, before others may run.
	looks = 256
)

// Send and receive calls on a queue that holds many messages. The ends take turns, so that they do
// not meet in the queue. Each block has a queue of its own.
type depth struct {
	open  func() Channel
	asked uint64
	// Lets others run.
	yield func()

	channel Channel
	// Messages in the queue, and between two stamps.
	filled, each uint64

	_ padding
	// Even turns are the sender's, odd ones the receiver's.
	turn   atomic.Uint64
	_      padding
	sender struct {
		begunNs int64
		timesNs [turns]int64
	}
	_        padding
	receiver struct {
		doneNs  int64
		timesNs [turns]int64
		wrong   uint64
	}
	_ padding
}

func readDepth(r *request) func() scenario {
	asked := r.number("depth", 1, mostCapacity)
	room := uint64(r.capacity)
	if r.queue.Capacity == "bounded" && asked+perTurn(asked) > room {
		r.fail("capacity=%d has no room for %d messages and those of a turn", room, asked)
	}
	return func() scenario { return &depth{open: r.open, asked: asked, yield: r.yield()} }
}

// Messages between two stamps.
func perTurn(depth uint64) uint64 {
	if depth > mostInTurn {
		return mostInTurn
	}
	return depth
}

func (d *depth) parts() []func() { return []func(){d.send, d.receive} }

func (d *depth) begin(block block) {
	d.filled = d.asked
	if block.warmsUp && d.filled > warmUpDepth {
		d.filled = warmUpDepth
	}
	d.each = perTurn(d.filled)
	d.channel = d.open()
	d.turn.Store(0)
}

func (d *depth) await(turn uint64) {
	for look := 1; d.turn.Load() != turn; look++ {
		if look%looks == 0 {
			d.yield()
		} else {
			Pause(1)
		}
	}
}

func (d *depth) send() {
	channel, next := d.channel, firstOf(0)
	d.sender.begunNs = nanotime()
	next = sendFrom(channel, next, d.filled)
	for i := range d.sender.timesNs {
		turn := 2 * uint64(i)
		d.await(turn)
		begin := nanotime()
		next = sendFrom(channel, next, d.each)
		d.sender.timesNs[i] = nanotime() - begin
		d.turn.Store(turn + 1)
	}
}

// Returns the number of the next message.
func sendFrom(channel Channel, next, count uint64) uint64 {
	for after := next + count; next < after; next++ {
		channel.Send(next)
	}
	return next
}

func (d *depth) receive() {
	channel, next, wrong := d.channel, firstOf(0), uint64(0)
	for i := range d.receiver.timesNs {
		turn := 2*uint64(i) + 1
		d.await(turn)
		begin := nanotime()
		wrong |= receiveFrom(channel, next, d.each)
		d.receiver.timesNs[i] = nanotime() - begin
		next += d.each
		d.turn.Store(turn + 1)
	}
	wrong |= receiveFrom(channel, next, d.filled)
	d.receiver.doneNs, d.receiver.wrong = nanotime(), wrong
}

// Returns the bits in which messages were wrong.
func receiveFrom(channel Channel, next, count uint64) uint64 {
	wrong := uint64(0)
	for after := next + count; next < after; next++ {
		wrong |= channel.Receive() ^ next
	}
	return wrong
}

func (d *depth) end(int64) (string, error) {
	d.channel = nil
	if d.receiver.wrong != 0 {
		return "", errWrong
	}
	counted := turns * d.each
	receiveNs := median(d.receiver.timesNs[:]) / float64(d.each)
	elapsedNs := atLeast(1, d.receiver.doneNs-d.sender.begunNs)
	return fmt.Sprintf("count %d\nsend_ns %f\nreceive_ns %f\nelapsed_ns %d\nchecked %d\n",
		counted, d.figure(), receiveNs, elapsedNs, counted+d.filled), nil
}

func (d *depth) figure() float64 { return median(d.sender.timesNs[:]) / float64(d.each) }
