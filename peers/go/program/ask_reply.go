package program

import (
	"fmt"
	"math"
	"strings"
)

// A message through one channel, its echo through the other, one under way at a time. The first
// half of a block has a stamp for each round trip, the second half one for each stretch of about
// 20 µs.
type askReply struct {
	there, back Channel
	lengthNs    int64
	_           padding
	asker       struct {
		number, wrong uint64
		times         []int64
		trips         int64
		meanNs        float64
	}
	_        padding
	answerer struct {
		number, wrong uint64
	}
	_ padding
}

const (
	mostStamped   = 1 << 20
	askStretchNs  = 20_000
	mostInStretch = 1000
)

func newAskReply(there, back Channel) *askReply {
	a := &askReply{there: there, back: back}
	a.asker.times = make([]int64, 0, mostStamped)
	return a
}

func (a *askReply) parts() []func() { return []func(){a.ask, a.answer} }

func (a *askReply) begin(lengthNs int64) { a.lengthNs = lengthNs }

func (a *askReply) ask() {
	there, back := a.there, a.back
	number, wrong := a.asker.number, a.asker.wrong
	times := a.asker.times[:0]
	begin := nanotime()
	half, until := begin+a.lengthNs/2, begin+a.lengthNs
	last := begin
	for len(times) == 0 || last < half && len(times) < mostStamped {
		number++
		there.Send(number)
		wrong |= back.Receive() ^ number
		now := nanotime()
		times = append(times, atLeast(0, now-last))
		last = now
	}
	trip := float64(last-begin) / float64(len(times))
	perStretch := int64(math.Max(1, math.Min(mostInStretch, askStretchNs/trip)))
	begun, trips := last, int64(0)
	for trips == 0 || last < until {
		for i := int64(0); i < perStretch; i++ {
			number++
			there.Send(number)
			wrong |= back.Receive() ^ number
		}
		trips += perStretch
		last = nanotime()
	}
	there.Send(end)
	wrong |= back.Receive() ^ end
	a.asker.meanNs = float64(last-begun) / float64(trips)
	a.asker.number, a.asker.wrong, a.asker.times, a.asker.trips = number, wrong, times, trips
}

func (a *askReply) answer() {
	there, back := a.there, a.back
	number, wrong := a.answerer.number, a.answerer.wrong
	for {
		message := there.Receive()
		// Verified after the answer has left: the asker does not wait for that.
		back.Send(message)
		if message == end {
			break
		}
		number++
		wrong |= message ^ number
	}
	a.answerer.number, a.answerer.wrong = number, wrong
}

func (a *askReply) end() (string, error) {
	if a.asker.wrong|a.answerer.wrong != 0 || a.asker.number != a.answerer.number {
		return "", errWrong
	}
	var out strings.Builder
	histogram(&out, "count", a.asker.times)
	checked := int64(len(a.asker.times)) + a.asker.trips
	fmt.Fprintf(&out, "mean_ns %f\nchecked %d\n", a.asker.meanNs, checked)
	return out.String(), nil
}

func (a *askReply) figure() float64 { return a.asker.meanNs }
