package program

import (
	"fmt"
	"math"
	"sync/atomic"
)

const (
	// Messages before the first stamp of a block.
	settling           = 256
	mostInStreamStamps = 4096
	streamStretchNs    = 50_000
)

// As many messages as the queue takes. When the time is up the receiver raises a flag, and each
// sender ends with a message without a number.
type stream struct {
	channel  Channel
	lengthNs int64
	_        padding
	raised   uint32
	_        padding
	senders  []sending
	received uint64
	wrong    uint64
	lasts    lasts
	stretch  int64
	ratePerS float64
	_        padding
}

type sending struct {
	next, sent uint64
	_          padding
}

func readStream(r *request) func() scenario {
	return func() scenario { return newStream(r.open(), r.senders) }
}

func newStream(channel Channel, senders int) *stream {
	s := &stream{channel: channel, stretch: 16, lasts: newLasts(senders)}
	s.senders = make([]sending, senders)
	for i := range s.senders {
		s.senders[i].next = firstOf(i)
	}
	return s
}

func (s *stream) parts() []func() {
	var parts []func()
	for i := range s.senders {
		i := i
		parts = append(parts, func() { s.send(i) })
	}
	if len(s.senders) == 1 {
		return append(parts, s.receiveFromOne)
	}
	return append(parts, s.receiveFromMany)
}

func (s *stream) begin(block block) {
	s.lengthNs = block.lengthNs
	atomic.StoreUint32(&s.raised, 0)
}

func (s *stream) send(index int) {
	channel, own := s.channel, &s.senders[index]
	next := own.next
	for atomic.LoadUint32(&s.raised) == 0 {
		for i := 0; i < round; i++ {
			channel.Send(next)
			next++
		}
	}
	channel.Send(endOf(index))
	own.sent = next - own.next
	own.next = next
}

func (s *stream) receiveFromOne() {
	channel, number, wrong := s.channel, s.lasts[0], uint64(0)
	from := number
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
	s.lasts[0], s.wrong, s.received = number, wrong, number-from
}

func (s *stream) receiveFromMany() {
	channel, lasts, wrong := s.channel, s.lasts, uint64(0)
	received, ended := uint64(0), 0
	one := func() {
		message := channel.Receive()
		if isEnd(message) && message>>numberBits < uint64(len(lasts)) {
			ended++
			return
		}
		received++
		wrong |= lasts.verify(message)
	}
	take := func(messages int64) {
		for i := int64(0); i < messages; i++ {
			one()
		}
	}
	take(settling)
	s.measure(take)
	for ended < len(lasts) {
		one()
	}
	s.wrong, s.received = wrong, received
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

func (s *stream) end(int64) (string, error) {
	sent := uint64(0)
	for i := range s.senders {
		sent += s.senders[i].sent
	}
	if err := verdict(s.wrong, sent, s.received); err != nil {
		return "", err
	}
	return fmt.Sprintf("count %d\nrate_per_s %f\nchecked %d\n", sent, s.ratePerS, sent), nil
}

func (s *stream) figure() float64 { return 1e9 / s.ratePerS }
