// Package program answers lines on standard input by lines on standard output, as docs/peers.md
// says.
package program

import (
	"bufio"
	"encoding/json"
	"fmt"
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
	Kind      string   `json:"kind"`
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Sentence  string   `json:"sentence"`
	Scenarios []string `json:"scenarios"`
	SlotBytes int      `json:"slot_bytes,omitempty"`
	Waits     []string `json:"waits"`

	// Threads is true if each end has a thread of its own, on its CPU. Otherwise the ends are
	// goroutines that the scheduler places on the CPUs.
	Threads bool `json:"-"`
	// Open makes a queue that waits in the given way.
	Open func(wait string, capacity int) Channel `json:"-"`
}

// Channel is a queue under test.
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
		peers[i].Scenarios = []string{"ask-reply", "stream"}
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
	answer, settlingNs, err := p.prepared.run(length)
	if err != nil {
		p.forget()
		return "", err
	}
	return fmt.Sprintf("%send settling_ns=%d", answer, settlingNs), nil
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
