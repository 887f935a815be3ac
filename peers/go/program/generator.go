package program

import (
	"math"
)

const (
	// Time before the first message, in which the receiver begins to wait.
	aheadNs = 100_000
	// The generator gives up after this multiple of a block's length: the queue is saturated.
	patience = 2
	// About the time by which a sleep ends late.
	wakeNs = 150_000
)

// Sends each message when it is due, drawn before the clock starts.
type generator struct {
	channel Channel
	sender  int
	// Sleeps for about this time, unless the next message is due soon; nil if it never sleeps.
	sleep       func(ns int64)
	lengthNs    int64
	stampNs     int64
	schedule    schedule
	sent, after []int64
	made        int
	cpuNs       int64
	_           padding
}

func (g *generator) begin(pattern pattern, lengthNs int64, seed uint64) {
	g.stampNs = costOfStamp()
	g.lengthNs = lengthNs
	g.schedule = pattern(lengthNs, seed)
	count := len(g.schedule.dueNs)
	g.sent, g.after = touched[int64](count), touched[int64](count)
}

// costOfStamp is what a reading of the clock takes: the least mean of a few batches.
func costOfStamp() int64 {
	const batches, each = 8, 64
	least := int64(math.MaxInt64)
	for batch := 0; batch < batches; batch++ {
		begin := nanotime()
		for i := 1; i < each; i++ {
			nanotime()
		}
		if mean := (nanotime() - begin) / each; mean < least {
			least = mean
		}
	}
	return least
}

// Memory that is there before a block begins.
func touched[T int64 | uint64](count int) []T {
	values := make([]T, count)
	for i := range values {
		values[i] = 1
	}
	return values
}

func (g *generator) work() {
	channel, due, sleep := g.channel, g.schedule.dueNs, g.sleep
	sent, after, first := g.sent, g.after, firstOf(g.sender)
	least := g.schedule.lead + 2
	if g.schedule.burst > 2 {
		least = g.schedule.lead + g.schedule.burst
	}
	lastsNs := atLeast(g.lengthNs, due[len(due)-1])
	cpu := cpuTime(ofThread)
	begin := nanotime() + aheadNs
	for i := range due {
		due[i] += begin
	}
	until := begin + patience*lastsNs
	made, now := 0, nanotime()
	// While it is late there is one stamp a message: that after a call is before the next.
	for made < len(due) && (now <= until || made < least) {
		for now < due[made] {
			if left := due[made] - now; sleep != nil && left > 2*wakeNs {
				sleep(left - wakeNs)
			}
			now = nanotime()
		}
		sent[made] = now
		channel.Send(first + uint64(made))
		now = nanotime()
		after[made] = now
		made++
	}
	channel.Send(endOf(g.sender))
	g.made, g.cpuNs = made, cpuTime(ofThread)-cpu
}

// Spins until the receiver waits; returns the time.
func startAhead() int64 {
	now := nanotime()
	for begin := now + aheadNs; now < begin; {
		now = nanotime()
	}
	return now
}
