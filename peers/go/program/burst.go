package program

import (
	"fmt"
	"strings"
)

// An open loop in which many messages are due at once.
type burst struct {
	openLoop
}

func readBurst(r *request) func() scenario {
	size := int(r.number("burst", 1, mostMessages/3))
	gapNs := int64(r.number("gap_ns", 1, 60_000_000_000))
	return func() scenario {
		channel := r.open()
		return &burst{newOpenLoop(r, bursts(size, gapNs), channel, channel)}
	}
}

func (b *burst) end(cpuNs int64) (string, error) { return b.answer(cpuNs, b.medians) }

// Appends medians over the bursts.
func (b *burst) medians(out *strings.Builder) {
	size, lead := b.generator.schedule.burst, b.generator.schedule.lead
	due, received := b.generator.schedule.dueNs, b.receiver.received
	var first, last, drain []int64
	foundEmpty := 0
	for start := lead; start+size <= b.generator.made; start += size {
		end := start + size - 1
		first = append(first, atLeast(0, received[start]-due[start]))
		last = append(last, atLeast(0, received[end]-due[start]))
		drain = append(drain, atLeast(0, received[end]-b.generator.after[end]))
		if received[start-1] <= due[start] {
			foundEmpty++
		}
	}
	fmt.Fprintf(out, "first_ns %.1f\nlast_ns %.1f\ndrain_ns %.1f\nbursts %d\nfound_empty %d\n",
		median(first), median(last), median(drain), len(first), foundEmpty)
}
