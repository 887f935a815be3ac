package program

import (
	"fmt"
	"math"
	"sort"
	"strings"
)

// Mean distance of the messages of an important sender.
const importantGapNs = 1e6

// Rare important messages among those of chatty senders, each an open loop of its own. Chatty ones
// are taken to compute between two messages, so they never sleep; important ones do.
type funnel struct {
	generators []*generator
	// The first ones.
	chatty      int
	chattyGapNs float64
	onThreads   bool
	receiver    gathering
	// Important messages that count, in the order in which they were due.
	important []delivery
}

func readFunnel(r *request) func() scenario {
	important := int(r.number("important", 1, uint64(r.senders)))
	gapNs := r.gapNs()
	r.word("arrivals", "poisson")
	return func() scenario {
		f := &funnel{chatty: r.senders - important, onThreads: r.onThreads()}
		f.chattyGapNs = float64(f.chatty) * gapNs
		f.receiver.channel = r.open()
		for sender := 0; sender < r.senders; sender++ {
			own := &generator{channel: f.receiver.channel, sender: sender}
			if sender >= f.chatty {
				own.sleep = r.sleep()
			}
			f.generators = append(f.generators, own)
		}
		return f
	}
}

func (f *funnel) parts() []func() {
	var parts []func()
	for _, generator := range f.generators {
		parts = append(parts, generator.work)
	}
	return append(parts, f.receiver.work)
}

func (f *funnel) begin(block block) {
	senders, room := len(f.generators), 0
	for sender, generator := range f.generators {
		gapNs := f.chattyGapNs
		if sender >= f.chatty {
			gapNs = importantGapNs
		}
		pattern := block.paced(poisson(gapNs), warmUpGapNs*float64(senders))
		// Neither another sender nor another block has this seed.
		generator.begin(pattern, block.lengthNs, block.seed*mostSenders+uint64(sender))
		room += len(generator.schedule.dueNs)
	}
	f.receiver.begin(senders, room)
}

func (f *funnel) end(cpuNs int64) (string, error) {
	bySender, err := f.receiver.bySender(f.generators)
	if err != nil {
		return "", err
	}
	f.important = f.important[:0]
	var chatty []int64
	var means strings.Builder
	sent := 0
	for sender, generator := range f.generators {
		sent += generator.made
		counted := generator.deliveries(bySender[sender])[generator.schedule.lead:]
		if sender >= f.chatty {
			f.important = append(f.important, counted...)
			continue
		}
		took := tookNs(counted)
		chatty = append(chatty, took...)
		fmt.Fprintf(&means, "mean_ns %.1f\n", mean(took))
	}
	sort.SliceStable(f.important, func(i, j int) bool {
		return f.important[i].dueNs < f.important[j].dueNs
	})
	var out strings.Builder
	distributions(&out, f.important)
	if f.onThreads {
		fmt.Fprintf(&out, "busy_ns %d\n", busyNs(cpuNs, f.generators...))
	}
	window(&out, sent, f.important, 0)
	histogram(&out, "chatty", chatty)
	fmt.Fprintf(&out, "%schecked %d\n", means.String(), sent)
	return out.String(), nil
}

func (f *funnel) figure() float64 { return median(tookNs(f.important)) }

// Stamps the messages of several senders, and keeps them.
type gathering struct {
	channel  Channel
	senders  int
	received []int64
	messages []uint64
	count    int
	wrong    uint64
	_        padding
}

func (g *gathering) begin(senders, room int) {
	g.senders = senders
	g.received, g.messages = touched[int64](room), touched[uint64](room)
}

// Receives until every sender has ended.
func (g *gathering) work() {
	channel, received, messages := g.channel, g.received, g.messages
	count, ended, wrong := 0, 0, uint64(0)
	for ended < g.senders {
		message := channel.Receive()
		now := nanotime()
		if isEnd(message) {
			ended++
			continue
		}
		if count == len(received) {
			wrong = math.MaxUint64
			continue
		}
		received[count], messages[count] = now, message
		count++
	}
	g.count, g.wrong = count, wrong
}

// The times at which each sender's messages were received, which were complete and in order.
func (g *gathering) bySender(generators []*generator) ([][]int64, error) {
	received, lasts, wrong := make([][]int64, g.senders), newLasts(g.senders), g.wrong
	for i, message := range g.messages[:g.count] {
		if wrong |= lasts.verify(message); wrong != 0 {
			return nil, errWrong
		}
		sender := message >> numberBits
		received[sender] = append(received[sender], g.received[i])
	}
	for sender, own := range received {
		err := verdict(wrong, uint64(generators[sender].made), uint64(len(own)))
		if err != nil {
			return nil, err
		}
	}
	return received, nil
}
