package program

import (
	"fmt"
	"strings"
)

const mostReceivers = 64

// A sender, as fast as it can, and receivers that share its messages and the queue. Each of them
// gets an end.
type workers struct {
	channel  Channel
	lengthNs int64
	_        padding
	sender   struct {
		begunNs int64
		sent    uint64
		_       padding
	}
	receivers []worker
}

type worker struct {
	count, sum uint64
	ascending  bool
	doneNs     int64
	_          padding
}

func readWorkers(r *request) func() scenario {
	receivers := int(r.number("receivers", 1, mostReceivers))
	return func() scenario {
		return &workers{channel: r.open(), receivers: make([]worker, receivers)}
	}
}

func (w *workers) parts() []func() {
	parts := []func(){w.send}
	for i := range w.receivers {
		own := &w.receivers[i]
		parts = append(parts, func() { own.receive(w.channel) })
	}
	return parts
}

func (w *workers) begin(block block) { w.lengthNs = block.lengthNs }

func (w *workers) send() {
	channel, sent := w.channel, uint64(0)
	begin := startAhead()
	for until := begin + w.lengthNs; sent == 0 || nanotime() < until; {
		for i := 0; i < round; i++ {
			sent++
			channel.Send(sent)
		}
	}
	for range w.receivers {
		channel.Send(end)
	}
	w.sender.begunNs, w.sender.sent = begin, sent
}

func (w *worker) receive(channel Channel) {
	count, sum, last, ascending := uint64(0), uint64(0), uint64(0), true
	for message := channel.Receive(); message != end; message = channel.Receive() {
		ascending = ascending && message > last
		last = message
		count++
		sum += message
	}
	w.doneNs = nanotime()
	w.count, w.sum, w.ascending = count, sum, ascending
}

func (w *workers) elapsedNs() int64 {
	done := w.sender.begunNs + 1
	for i := range w.receivers {
		done = atLeast(done, w.receivers[i].doneNs)
	}
	return done - w.sender.begunNs
}

func (w *workers) end(int64) (string, error) {
	sent := w.sender.sent
	var lines strings.Builder
	count, sum := uint64(0), uint64(0)
	for i := range w.receivers {
		own := &w.receivers[i]
		if !own.ascending {
			return "", errWrong
		}
		count += own.count
		sum += own.sum
		fmt.Fprintf(&lines, "received %d\n", own.count)
	}
	// The factors of sent * (sent + 1) / 2, the even one halved: their product wraps as a sum does.
	expected := (sent | 1) * ((sent + 1) / 2)
	if err := verdict(sum^expected, sent, count); err != nil {
		return "", err
	}
	return fmt.Sprintf("count %d\nelapsed_ns %d\nshared 1\n%schecked %d\n",
		sent, w.elapsedNs(), lines.String(), count), nil
}

func (w *workers) figure() float64 { return float64(w.elapsedNs()) / float64(w.sender.sent) }
