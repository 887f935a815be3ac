package program

import (
	"fmt"
	"math"
	"sync/atomic"
)

const (
	// Number of messages before the first stamp of a block.
	settling           = 256
	mostInStreamStamps = 4096
	streamStretchNs    = 50_000
)

// Messages sent as fast as the queue takes them. When the time is up, the receiver raises a flag,
// and the sender ends with a message without a number.
type stream struct {
	channel  Channel
	lengthNs int64
	_        padding
	raised   uint32
	_        padding
	next     uint64
	sent     uint64
	_        padding
	number   uint64
	received uint64
	wrong    uint64
	stretch  int64
	ratePerS float64
	_        padding
}

func newStream(channel Channel) *stream {
	return &stream{channel: channel, next: 1, stretch: 16}
}

func (s *stream) parts() []func() { return []func(){s.send, s.receive} }

func (s *stream) begin(lengthNs int64) {
	s.lengthNs = lengthNs
	atomic.StoreUint32(&s.raised, 0)
}

func (s *stream) send() {
	channel, next := s.channel, s.next
	for atomic.LoadUint32(&s.raised) == 0 {
		for i := 0; i < round; i++ {
			channel.Send(next)
			next++
		}
	}
	channel.Send(end)
	s.sent = next - s.next
	s.next = next
}

func (s *stream) receive() {
	channel, number, wrong := s.channel, s.number, uint64(0)
	take := func(messages int64) {
		// Copies: the closure reaches captured variables through its context.
		last, odd := number, wrong
		for i := int64(0); i < messages; i++ {
			last++
			odd |= channel.Receive() ^ last
		}
		number, wrong = last, odd
	}
	take(settling)
	s.measure(take)
	for message := channel.Receive(); message != end; message = channel.Receive() {
		number++
		wrong |= message ^ number
	}
	s.received = number - s.number
	s.number, s.wrong = number, wrong
}

// Takes stretches of messages until the time is up.
func (s *stream) measure(take func(messages int64)) {
	begun, messages := nanotime(), int64(0)
	for {
		take(s.stretch)
		messages += s.stretch
		now := nanotime()
		if now-begun >= s.lengthNs {
			atomic.StoreUint32(&s.raised, 1)
			s.ratePerS = float64(messages) * 1e9 / float64(now-begun)
			s.stretch = int64(math.Max(1, math.Min(mostInStreamStamps, s.ratePerS*streamStretchNs/1e9)))
			return
		}
	}
}

func (s *stream) end() (string, error) {
	if s.wrong != 0 {
		return "", errWrong
	}
	if s.sent != s.received {
		return "", fmt.Errorf("%d of %d messages arrived", s.received, s.sent)
	}
	return fmt.Sprintf("count %d\nrate_per_s %f\nchecked %d\n", s.sent, s.ratePerS, s.sent), nil
}

func (s *stream) figure() float64 { return 1e9 / s.ratePerS }
