package program

import (
	"fmt"
	"strings"
	"sync/atomic"
)

const (
	// Most messages of a dump.
	mostDumped = 1 << 20
	// Time for which the receiver computes after each message.
	computeNs = 100
	// Shorter waits of the writer are spent spinning.
	napNs           = 20_000
	warmUpLineGapNs = 100_000
)

// Senders, by number.
const (
	dumper = iota
	writer
	floodSenders
)

// Send calls of a line now and then, while another sender dumps all that the queue takes.
type flood struct {
	channel Channel
	pattern pattern
	sleep   func(ns int64)
	// Times at which lines are due, since the schedule's start.
	dueNs []int64

	_ padding
	// True once all lines have been sent.
	written atomic.Bool
	_       padding
	// True once the dumper has sent its last message.
	dumped   atomic.Bool
	_        padding
	dumpSent uint64
	_        padding
	// Times of the writer's calls, and from the first one's begin to the last one's end.
	callsNs   []int64
	elapsedNs int64
	_         padding
	received  uint64
	wrong     uint64
	_         padding
}

func readFlood(r *request) func() scenario {
	gapNs := r.gapNs()
	r.word("arrivals", "poisson")
	return func() scenario {
		return &flood{channel: r.open(), pattern: poisson(gapNs), sleep: r.sleep()}
	}
}

func (f *flood) parts() []func() { return []func(){f.dump, f.write, f.receive} }

func (f *flood) begin(block block) {
	pattern := block.paced(f.pattern, warmUpLineGapNs)
	f.dueNs = pattern(block.lengthNs, block.seed).dueNs
	f.callsNs = touched[int64](len(f.dueNs))
	f.written.Store(false)
	f.dumped.Store(false)
}

func (f *flood) dump() {
	channel, first := f.channel, firstOf(dumper)
	startAhead()
	next := first
	for next-first < mostDumped && !f.written.Load() {
		for i := 0; i < round; i++ {
			channel.Send(next)
			next++
		}
	}
	f.dumpSent = next - first
	f.dumped.Store(true)
}

func (f *flood) write() {
	channel, next, due, calls := f.channel, firstOf(writer), f.dueNs, f.callsNs
	// After the start of the dump.
	start := nanotime() + 2*aheadNs
	var firstBegin, lastEnd int64
	for i := range due {
		begin := f.waitUntil(start + due[i])
		channel.Send(next)
		lastEnd = nanotime()
		next++
		calls[i] = lastEnd - begin
		if i == 0 {
			firstBegin = begin
		}
	}
	f.elapsedNs = lastEnd - firstBegin
	f.written.Store(true)
	for !f.dumped.Load() {
		f.sleep(napNs)
	}
	channel.Send(end)
}

// Sleeps, or spins; returns the time.
func (f *flood) waitUntil(due int64) int64 {
	now := nanotime()
	for ; now < due; now = nanotime() {
		if due-now > napNs {
			f.sleep(due - now)
		}
	}
	return now
}

func (f *flood) receive() {
	channel, lasts, received, wrong := f.channel, newLasts(floodSenders), uint64(0), uint64(0)
	for message := channel.Receive(); message != end; message = channel.Receive() {
		received++
		wrong |= lasts.verify(message)
		for until := nanotime() + computeNs; nanotime() < until; {
		}
	}
	f.received, f.wrong = received, wrong
}

func (f *flood) end(int64) (string, error) {
	sent := f.dumpSent + uint64(len(f.callsNs))
	if err := verdict(f.wrong, sent, f.received); err != nil {
		return "", err
	}
	var out strings.Builder
	histogram(&out, "count", f.callsNs)
	fmt.Fprintf(&out, "elapsed_ns %d\nsent %d\nchecked %d\n", atLeast(1, f.elapsedNs), sent, sent)
	return out.String(), nil
}

func (f *flood) figure() float64 { return median(f.callsNs) }
