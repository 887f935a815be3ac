// Package program answers lines on standard input by lines on standard output, as docs/peers.md
// says.
package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Time for the answers to earlier lines once the input is over.
const grace = 500 * time.Millisecond

// Queue is a peer.
type Queue struct {
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Sentence   string   `json:"sentence"`
	Scenarios  []string `json:"scenarios"`
	Senders    string   `json:"senders"`
	Capacity   string   `json:"capacity"`
	SlotBytes  int      `json:"slot_bytes,omitempty"`
	PowerOfTwo bool     `json:"power_of_two"`
	Waits      []string `json:"waits"`
	Batches    bool     `json:"batches"`

	// Threads is true if each end has a thread of its own, on its CPU. Otherwise the ends are
	// goroutines that the scheduler places on the CPUs.
	Threads bool `json:"-"`
	// Open makes a queue that waits in the given way.
	Open func(wait string, capacity int) Channel `json:"-"`
}

// Channel is a queue under test. Several senders share one.
type Channel interface {
	Send(message uint64)
	Receive() uint64
}

type description struct {
	Program  int     `json:"program"`
	Language string  `json:"language"`
	Runtime  string  `json:"runtime"`
	Compiler string  `json:"compiler"`
	Flags    string  `json:"flags"`
	Peers    []Queue `json:"peers"`
}

// Run answers until the input is over.
func Run(flags string, peers []Queue) {
	for i := range peers {
		peers[i].Kind = "queue"
		peers[i].Version = strings.TrimPrefix(runtime.Version(), "go")
		peers[i].Scenarios = []string{"ask-reply", "stream", "open-loop", "burst"}
		peers[i].Senders = "many"
	}
	debug.SetGCPercent(-1)
	lines := make(chan string, 64)
	go read(lines)
	out := bufio.NewWriter(os.Stdout)
	program := program{flags: flags, peers: peers}
	for line := range lines {
		answer, err := program.answer(strings.Fields(line))
		if err != nil {
			answer = "error " + strings.Join(strings.Fields(err.Error()), " ")
		}
		out.WriteString(answer + "\n")
		out.Flush()
	}
	os.Exit(0)
}

func read(lines chan<- string) {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() && strings.TrimSpace(input.Text()) != "quit" {
		lines <- input.Text()
	}
	close(lines)
	time.Sleep(grace)
	// Ends a block that is under way, too: its goroutines may spin or hang.
	os.Exit(0)
}

type program struct {
	flags    string
	peers    []Queue
	prepared *bench
}

func (p *program) answer(words []string) (string, error) {
	if len(words) == 0 {
		return "", fmt.Errorf("an empty line is not a request")
	}
	switch words[0] {
	case "hello":
		text, err := json.Marshal(description{1, "go", runtime.Version(),
			runtime.Compiler + " " + runtime.Version(), p.flags, p.peers})
		return string(text), err
	case "clock":
		return fmt.Sprintf("clock %d", nanotime()), nil
	case "prepare":
		p.forget()
		began := nanotime()
		bench, err := p.prepare(words[1:])
		if err != nil {
			return "", err
		}
		if err := bench.warmUp(); err != nil {
			bench.close()
			return "", err
		}
		p.prepared = bench
		return fmt.Sprintf("ready warm_up_ms=%d", (nanotime()-began)/1e6), nil
	case "block":
		return p.block(words[1:])
	}
	return "", fmt.Errorf("“%s” is not a request", words[0])
}

func (p *program) block(words []string) (string, error) {
	if len(words) != 1 {
		return "", fmt.Errorf("a block needs a length, as in `block 50ms`")
	}
	length, err := nanoseconds(words[0])
	if err != nil {
		return "", err
	}
	if p.prepared == nil {
		return "", fmt.Errorf("nothing is prepared")
	}
	answer, err := p.prepared.run(length)
	if err != nil {
		p.forget()
		return "", err
	}
	return answer + "end", nil
}

func (p *program) forget() {
	if p.prepared != nil {
		p.prepared.close()
		p.prepared = nil
	}
}

var duration = regexp.MustCompile(`^(\d+(?:\.\d+)?)(ns|us|ms|s)$`)

func nanoseconds(text string) (int64, error) {
	parts := duration.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("“%s” is not a duration", text)
	}
	unit := map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[parts[2]]
	number, err := strconv.ParseFloat(parts[1], 64)
	length := number * unit
	if err != nil || length < 1 || length > 3600e9 {
		return 0, fmt.Errorf("a block lasts from 1ns to an hour")
	}
	return int64(length), nil
}

// The key=value words of a request. The first error is kept.
type keys struct {
	left map[string]string
	err  error
}

func newKeys(words []string) *keys {
	k := &keys{left: map[string]string{}}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if _, given := k.left[key]; !ok || key == "" || given {
			k.fail("“%s” is not of the form key=value, or given twice", word)
		}
		k.left[key] = value
	}
	return k
}

func (k *keys) fail(format string, values ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, values...)
	}
}

func (k *keys) text(key string) string {
	value, ok := k.left[key]
	if !ok {
		k.fail("%s is missing", key)
	}
	delete(k.left, key)
	return value
}

func (k *keys) number(key string, least, most uint64) uint64 {
	text := k.text(key)
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		k.fail("%s=%s is not a number", key, text)
	} else if number < least || number > most {
		k.fail("%s=%s is impossible: it is from %d to %d", key, text, least, most)
	}
	return number
}

func (k *keys) numberOr(otherwise uint64, key string, least, most uint64) uint64 {
	if _, ok := k.left[key]; !ok {
		return otherwise
	}
	return k.number(key, least, most)
}

// CPUs for the threads; none if they are not pinned.
func (k *keys) cpus() []int {
	text := k.text("cpus")
	if text == "" {
		return nil
	}
	var cpus []int
	for _, word := range strings.Split(text, ",") {
		cpu, err := strconv.ParseUint(word, 10, 16)
		if err != nil || cpu >= maxCPUs {
			k.fail("cpus=%s is not a list of CPUs", text)
		}
		cpus = append(cpus, int(cpu))
	}
	return cpus
}

func (k *keys) finish() error {
	for key := range k.left {
		k.fail("%s does not apply here", key)
	}
	return k.err
}

func (p *program) prepare(words []string) (*bench, error) {
	if len(words) < 3 || words[0] != "queue" {
		return nil, fmt.Errorf("this program prepares queues only: `prepare queue NAME SCENARIO …`")
	}
	var queue *Queue
	for i := range p.peers {
		if p.peers[i].Name == words[1] {
			queue = &p.peers[i]
		}
	}
	if queue == nil {
		return nil, fmt.Errorf("%s is not a peer of this program", words[1])
	}
	k := newKeys(words[3:])
	cpus := k.cpus()
	wait := k.text("wait")
	known := false
	for _, one := range queue.Waits {
		known = known || one == wait
	}
	if !known {
		k.fail("%s has no wait=%s", queue.Name, wait)
	}
	capacity := 0
	if queue.Capacity == "bounded" {
		capacity = int(k.number("capacity", 1, 1<<26))
	}
	mostSenders := uint64(1)
	if words[2] == "stream" {
		mostSenders = 64
	}
	senders := int(k.numberOr(1, "senders", 1, mostSenders))
	k.numberOr(1, "batch", 1, 1)
	k.numberOr(8, "payload_bytes", 8, 8)
	seed := k.numberOr(0, "seed", 0, math.MaxUint64)

	var scenario scenario
	open := func() Channel { return queue.Open(wait, capacity) }
	switch words[2] {
	case "ask-reply":
		if err := k.finish(); err != nil {
			return nil, err
		}
		scenario = newAskReply(open(), open())
	case "stream":
		if err := k.finish(); err != nil {
			return nil, err
		}
		scenario = newStream(open(), senders)
	case "open-loop":
		gapNs := 1e9 / float64(k.number("rate_per_s", 1, 100_000_000))
		arrivals := k.text("arrivals")
		if arrivals != "uniform" && arrivals != "poisson" {
			k.fail("arrivals=%s is not known", arrivals)
		}
		if err := k.finish(); err != nil {
			return nil, err
		}
		scenario = &paced{channel: open(), pattern: openLoop(gapNs, arrivals == "poisson"),
			onThreads: queue.Threads && len(cpus) > 0}
	case "burst":
		burst := int(k.number("burst", 1, mostMessages/3))
		gapNs := int64(k.number("gap_ns", 1, 60_000_000_000))
		if err := k.finish(); err != nil {
			return nil, err
		}
		scenario = &paced{channel: open(), pattern: bursts(burst, gapNs), inBursts: true,
			onThreads: queue.Threads && len(cpus) > 0}
	default:
		return nil, fmt.Errorf("%s is not a scenario of this program", words[2])
	}
	return newBench(scenario, seed, cpus, queue.Threads)
}
