package program

import (
	"fmt"
	"math"
	"math/rand"
	"runtime"
	"sort"
	"strings"
	"sync/atomic"
)

// The end of a block; messages are numbered from 1.
const end = 0

// Goroutines that measure a queue, a block at a time.
type scenario interface {
	// The work of each goroutine in a block: a sender, the receiver, then any other senders.
	parts() []func()
	// Called before the parts run.
	begin(lengthNs int64, seed uint64)
	// Called after the parts have run; returns the lines of the answer, without `end`.
	end() (string, error)
	// The figure that levels off in a warm-up: a time per message of the last block.
	figure() float64
}

const (
	warmBlockNs  = 20_000_000
	mostWarmUpNs = 2_000_000_000
	// Medians of this number of blocks are compared.
	level       = 5
	levelWithin = 0.05
)

type bench struct {
	scenario scenario
	crew     *crew
	seed     uint64
}

func newBench(scenario scenario, seed uint64, cpus []int, threads bool) (*bench, error) {
	parts := scenario.parts()
	places := cpus
	if threads && len(cpus) > 0 {
		places = placesOf(cpus, len(parts))
	}
	crew, err := newCrew(parts, places, threads)
	if err != nil {
		return nil, err
	}
	return &bench{scenario, crew, seed}, nil
}

// The receiver has the second CPU for itself; senders share the others.
func placesOf(cpus []int, parts int) []int {
	others := append([]int(nil), cpus[:1]...)
	receiver := cpus[0]
	if len(cpus) > 1 {
		receiver = cpus[1]
		others = append(others, cpus[2:]...)
	}
	places := []int{others[0], receiver}
	for sender := 1; len(places) < parts; sender++ {
		places = append(places, others[sender%len(others)])
	}
	return places
}

func (b *bench) close() { b.crew.close() }

func (b *bench) run(lengthNs int64) (string, error) {
	b.scenario.begin(lengthNs, b.seed)
	// Between blocks only: channels of numbers make no garbage, this program does.
	runtime.GC()
	b.seed++
	b.crew.work()
	return b.scenario.end()
}

// Runs blocks until their figures have levelled off.
func (b *bench) warmUp() error {
	if paced, ok := b.scenario.(*paced); ok {
		// Messages that are far apart would take too long.
		asked := paced.pattern
		paced.pattern = openLoop(5_000, false)
		defer func() { paced.pattern = asked }()
	}
	began := nanotime()
	before := math.NaN()
	for nanotime()-began < mostWarmUpNs {
		var figures []float64
		for i := 0; i < level; i++ {
			if _, err := b.run(warmBlockNs); err != nil {
				return err
			}
			figures = append(figures, b.scenario.figure())
		}
		now := median(figures)
		if math.Abs(now/before-1) <= levelWithin {
			break
		}
		before = now
	}
	return nil
}

func median(values []float64) float64 {
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Appends a line for each distinct value, ascending, with the number of times.
func histogram(out *strings.Builder, name string, values []int64) {
	sorted := append([]int64(nil), values...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	var lines strings.Builder
	distinct := 0
	for i := 0; i < len(sorted); {
		next := i + 1
		for next < len(sorted) && sorted[next] == sorted[i] {
			next++
		}
		fmt.Fprintf(&lines, "%d %d\n", sorted[i], next-i)
		distinct++
		i = next
	}
	fmt.Fprintf(out, "%s %d\n%s", name, distinct, lines.String())
}

func atLeastZero(ns int64) int64 {
	if ns < 0 {
		return 0
	}
	return ns
}

// Keeps what one goroutine writes off the cache lines of others.
type padding [128]byte

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
	mostStamped     = 1 << 20
	askStretchNs    = 20_000
	mostInStretch   = 1000
	streamStretchNs = 50_000
)

func newAskReply(there, back Channel) *askReply {
	a := &askReply{there: there, back: back}
	a.asker.times = make([]int64, 0, mostStamped)
	return a
}

func (a *askReply) parts() []func() { return []func(){a.ask, a.answer} }

func (a *askReply) begin(lengthNs int64, _ uint64) { a.lengthNs = lengthNs }

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
		times = append(times, atLeastZero(now-last))
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
		return "", fmt.Errorf("a message was wrong, lost or repeated")
	}
	var out strings.Builder
	histogram(&out, "count", a.asker.times)
	checked := int64(len(a.asker.times)) + a.asker.trips
	fmt.Fprintf(&out, "mean_ns %f\nchecked %d\n", a.asker.meanNs, checked)
	return out.String(), nil
}

func (a *askReply) figure() float64 { return a.asker.meanNs }

const (
	// The sender's number is above these bits.
	numberBits = 56
	// Messages between two looks at the flag.
	round = 64
	// Messages before the first stamp of a block.
	settling           = 256
	mostInStreamStamps = 4096
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
	numbers  []uint64
	stretch  int64
	ratePerS float64
	_        padding
}

type sending struct {
	next, sent uint64
	_          padding
}

func newStream(channel Channel, senders int) *stream {
	s := &stream{channel: channel, stretch: 16}
	s.senders, s.numbers = make([]sending, senders), make([]uint64, senders)
	for i := range s.senders {
		s.senders[i].next = uint64(i)<<numberBits + 1
		s.numbers[i] = uint64(i) << numberBits
	}
	return s
}

func (s *stream) parts() []func() {
	var parts []func()
	for i := range s.senders {
		i := i
		parts = append(parts, func() { s.send(i) })
		if i == 0 {
			if len(s.senders) == 1 {
				parts = append(parts, s.receiveFromOne)
			} else {
				parts = append(parts, s.receiveFromMany)
			}
		}
	}
	return parts
}

func (s *stream) begin(lengthNs int64, _ uint64) {
	s.lengthNs = lengthNs
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
	channel.Send(uint64(index) << numberBits)
	own.sent = next - own.next
	own.next = next
}

func (s *stream) receiveFromOne() {
	channel, number, wrong := s.channel, s.numbers[0], uint64(0)
	from := number
	take := func(messages int64) {
		for i := int64(0); i < messages; i++ {
			number++
			wrong |= channel.Receive() ^ number
		}
	}
	take(settling)
	s.measure(take)
	for message := channel.Receive(); message != end; message = channel.Receive() {
		number++
		wrong |= message ^ number
	}
	s.numbers[0], s.wrong, s.received = number, wrong, number-from
}

func (s *stream) receiveFromMany() {
	channel, numbers, wrong := s.channel, s.numbers, uint64(0)
	received, ended := uint64(0), 0
	one := func() {
		message := channel.Receive()
		sender := message >> numberBits
		if sender >= uint64(len(numbers)) {
			wrong = math.MaxUint64
			return
		}
		if message<<(64-numberBits) == end {
			ended++
			return
		}
		numbers[sender]++
		received++
		wrong |= message ^ numbers[sender]
	}
	take := func(messages int64) {
		for i := int64(0); i < messages; i++ {
			one()
		}
	}
	take(settling)
	s.measure(take)
	for ended < len(numbers) {
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

func (s *stream) end() (string, error) {
	sent := uint64(0)
	for i := range s.senders {
		sent += s.senders[i].sent
	}
	if s.wrong != 0 {
		return "", fmt.Errorf("a message was wrong, lost, repeated or out of order")
	}
	if sent != s.received {
		return "", fmt.Errorf("%d of %d messages arrived", s.received, sent)
	}
	return fmt.Sprintf("count %d\nrate_per_s %f\nchecked %d\n", sent, s.ratePerS, sent), nil
}

func (s *stream) figure() float64 { return 1e9 / s.ratePerS }

const (
	// Most messages of a block.
	mostMessages = 50_000
	// Time before the first message, in which the receiver begins to wait.
	aheadNs = 100_000
	// The generator gives up after this multiple of a block's length: the queue is saturated.
	patience = 2
	// Messages that count, for each one before them that does not.
	leadShare = 10
)

// The times at which the messages of a block are due.
type schedule struct {
	// Since its start.
	dueNs []int64
	// Messages at the beginning that do not count.
	lead int
	// Messages that are due at a time.
	burst int
}

type pattern func(lengthNs int64, seed uint64) schedule

// Messages at equal or at exponential distances.
func openLoop(gapNs float64, poisson bool) pattern {
	return func(lengthNs int64, seed uint64) schedule {
		random := rand.New(rand.NewSource(int64(seed)))
		due := make([]int64, 0, mostMessages)
		lead, at, last := 0, 0.0, 0.0
		for {
			due = append(due, int64(at))
			if poisson {
				at -= gapNs * math.Log(1-random.Float64())
			} else {
				at += gapNs
			}
			if lead == 0 {
				if at >= float64(lengthNs)/leadShare || len(due) >= mostMessages/(leadShare+1) {
					lead, last = len(due), at+float64(lengthNs)
				}
				continue
			}
			enough := len(due)-lead >= 2 && due[lead] < due[len(due)-1]
			if enough && at > last || len(due) == mostMessages {
				return schedule{due, lead, 1}
			}
		}
	}
}

// Bursts at equal distances.
func bursts(burst int, gapNs int64) pattern {
	return func(lengthNs int64, _ uint64) schedule {
		count := int(lengthNs / gapNs)
		if most := mostMessages / burst; count > most {
			count = most
		}
		if count < 2 {
			count = 2
		}
		due := make([]int64, (count+1)*burst)
		for i := range due {
			due[i] = int64(i/burst) * gapNs
		}
		return schedule{due, burst, burst}
	}
}

// Messages that are sent when they are due, drawn before the clock starts. A delivery lasts from
// the moment at which a message was due, so nothing that delays either end is left out.
type paced struct {
	channel  Channel
	pattern  pattern
	inBursts bool
	// True if an end keeps its thread, whose CPU time is then that of the end.
	onThreads bool
	lengthNs  int64
	stampNs   int64
	schedule  schedule
	_         padding
	generator struct {
		sent, after []int64
		made        int
		cpuNs       int64
	}
	_        padding
	receiver struct {
		received []int64
		wrong    uint64
		count    int
		cpuNs    int64
	}
	_ padding
}

func (p *paced) parts() []func() { return []func(){p.generate, p.receive} }

func (p *paced) begin(lengthNs int64, seed uint64) {
	p.stampNs = costOfStamp()
	p.lengthNs = lengthNs
	p.schedule = p.pattern(lengthNs, seed)
	count := len(p.schedule.dueNs)
	p.generator.sent, p.generator.after = touched(count), touched(count)
	p.receiver.received = touched(count)
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

func touched(count int) []int64 {
	values := make([]int64, count)
	for i := range values {
		values[i] = 1
	}
	return values
}

func (p *paced) generate() {
	channel, due := p.channel, p.schedule.dueNs
	sent, after := p.generator.sent, p.generator.after
	least := p.schedule.lead + 2
	if p.schedule.burst > 2 {
		least = p.schedule.lead + p.schedule.burst
	}
	lasts := due[len(due)-1]
	if lasts < p.lengthNs {
		lasts = p.lengthNs
	}
	cpu := cpuTime()
	begin := nanotime() + aheadNs
	for i := range due {
		due[i] += begin
	}
	until := begin + patience*lasts
	made, now := 0, nanotime()
	// While it is late there is one stamp a message: that after a call is before the next.
	for made < len(due) && (now <= until || made < least) {
		for now < due[made] {
			now = nanotime()
		}
		sent[made] = now
		channel.Send(uint64(made + 1))
		now = nanotime()
		after[made] = now
		made++
	}
	channel.Send(end)
	p.generator.made, p.generator.cpuNs = made, cpuTime()-cpu
}

func (p *paced) receive() {
	channel, received := p.channel, p.receiver.received
	count, wrong := 0, uint64(0)
	cpu := cpuTime()
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
	p.receiver.count, p.receiver.wrong, p.receiver.cpuNs = count, wrong, cpuTime()-cpu
}

func (p *paced) end() (string, error) {
	made := p.generator.made
	if p.receiver.wrong != 0 {
		return "", fmt.Errorf("a message was wrong, lost, repeated or out of order")
	}
	if made != p.receiver.count {
		return "", fmt.Errorf("%d of %d messages arrived", p.receiver.count, made)
	}
	due, received, lead := p.schedule.dueNs, p.receiver.received, p.schedule.lead
	begin, last := due[lead], due[made-1]
	took, late := make([]int64, made), make([]int64, made)
	var dueWithin, receivedWithin, sendingNs, free int64
	lastReceived := last
	for i := 0; i < made; i++ {
		took[i] = atLeastZero(received[i] - due[i])
		// Late after the moment at which it was due and the calls before it, less their stamps,
		// would have returned: a call that waits for room is not the generator's fault.
		ready := due[i]
		if ready < free {
			ready = free
		}
		late[i] = p.generator.sent[i] - ready
		free = ready + atLeastZero(p.generator.after[i]-p.generator.sent[i]-p.stampNs)
		if begin <= due[i] && due[i] < last {
			dueWithin++
		}
		if begin <= received[i] && received[i] < last {
			receivedWithin++
		}
		if received[i] > lastReceived {
			lastReceived = received[i]
		}
		sendingNs += p.generator.after[i] - p.generator.sent[i]
	}
	var out strings.Builder
	histogram(&out, "count", took[lead:])
	histogram(&out, "lateness", late[lead:])
	if p.onThreads {
		if sendingNs > p.generator.cpuNs {
			sendingNs = p.generator.cpuNs
		}
		fmt.Fprintf(&out, "busy_ns %d\n", sendingNs+p.receiver.cpuNs)
	}
	fmt.Fprintf(&out, "sent %d\nelapsed_ns %d\nwindow_ns %d\ndue %d\nreceived %d\n",
		made, lastReceived-begin, atLeastOne(last-begin), atLeastOne(dueWithin), receivedWithin)
	if p.inBursts {
		p.bursts(&out)
	}
	fmt.Fprintf(&out, "checked %d\n", made)
	return out.String(), nil
}

func (p *paced) bursts(out *strings.Builder) {
	size, lead := p.schedule.burst, p.schedule.lead
	due, received := p.schedule.dueNs, p.receiver.received
	var first, last, drain []float64
	foundEmpty := 0
	for start := lead; start+size <= p.generator.made; start += size {
		end := start + size - 1
		first = append(first, float64(atLeastZero(received[start]-due[start])))
		last = append(last, float64(atLeastZero(received[end]-due[start])))
		drain = append(drain, float64(atLeastZero(received[end]-p.generator.after[end])))
		if received[start-1] <= due[start] {
			foundEmpty++
		}
	}
	fmt.Fprintf(out, "first_ns %.1f\nlast_ns %.1f\ndrain_ns %.1f\nbursts %d\nfound_empty %d\n",
		median(first), median(last), median(drain), len(first), foundEmpty)
}

func atLeastOne(number int64) int64 {
	if number < 1 {
		return 1
	}
	return number
}

func (p *paced) figure() float64 {
	var took []float64
	for i := p.schedule.lead; i < p.generator.made; i++ {
		took = append(took, float64(p.receiver.received[i]-p.schedule.dueNs[i]))
	}
	return median(took)
}
