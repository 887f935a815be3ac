package program

import (
	"fmt"
	"math"
	"strings"
)

const warmUpGapNs = 5_000

// A generator and a receiver.
type openLoop struct {
	pattern   pattern
	onThreads bool
	generator generator
	receiver  receiver
}

func readOpenLoop(r *request) func() scenario {
	gapNs := r.gapNs()
	pattern := uniform(gapNs)
	if r.word("arrivals", "uniform", "poisson") == "poisson" {
		pattern = poisson(gapNs)
	}
	return func() scenario {
		channel := r.open()
		loop := newOpenLoop(r, pattern, channel, channel)
		return &loop
	}
}

// The first and the last channel are the same unless there are others between them.
func newOpenLoop(r *request, pattern pattern, first, last Channel) openLoop {
	return openLoop{
		pattern:   pattern,
		onThreads: r.onThreads(),
		generator: generator{channel: first},
		receiver:  receiver{channel: last},
	}
}

func (o *openLoop) parts() []func() { return []func(){o.generator.work, o.receiver.work} }

func (o *openLoop) begin(block block) {
	o.generator.begin(block.paced(o.pattern, warmUpGapNs), block.lengthNs, block.seed)
	o.receiver.received = touched[int64](len(o.generator.schedule.dueNs))
}

func (o *openLoop) end(cpuNs int64) (string, error) {
	return o.answer(cpuNs, func(*strings.Builder) {})
}

// The answer, with further lines before the last one.
func (o *openLoop) answer(cpuNs int64, further func(out *strings.Builder)) (string, error) {
	made, lead := o.generator.made, o.generator.schedule.lead
	err := verdict(o.receiver.wrong, uint64(made), uint64(o.receiver.count))
	if err != nil {
		return "", err
	}
	all := o.generator.deliveries(o.receiver.received)
	var out strings.Builder
	distributions(&out, all[lead:])
	if o.onThreads {
		fmt.Fprintf(&out, "busy_ns %d\n", busyNs(cpuNs, &o.generator))
	}
	window(&out, made, all, lead)
	further(&out)
	fmt.Fprintf(&out, "checked %d\n", made)
	return out.String(), nil
}

func (o *openLoop) figure() float64 {
	counted := o.generator.deliveries(o.receiver.received)[o.generator.schedule.lead:]
	return median(tookNs(counted))
}

// Stamps the messages of one sender, and verifies them.
type receiver struct {
	channel  Channel
	received []int64
	wrong    uint64
	count    int
	_        padding
}

func (r *receiver) work() {
	channel, received := r.channel, r.received
	count, wrong := 0, uint64(0)
	for {
		message := channel.Receive()
		now := nanotime()
		if message == end {
			break
		}
		if count == len(received) {
			wrong = math.MaxUint64
			continue
		}
		received[count] = now
		count++
		wrong |= message ^ uint64(count)
	}
	r.count, r.wrong = count, wrong
}
