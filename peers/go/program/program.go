// Package program answers lines on standard input by lines on standard output, as
// docs/dev/peers.md says.
package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

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
	out := bufio.NewWriter(os.Stdout)
	program := program{flags: flags, peers: peers}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() && strings.TrimSpace(input.Text()) != "quit" {
		answer, err := program.answer(strings.Fields(input.Text()))
		if err != nil {
			answer = "error " + strings.Join(strings.Fields(err.Error()), " ")
		}
		out.WriteString(answer + "\n")
		out.Flush()
	}
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
		return "", fmt.Errorf("a block needs a length, as in `block 50000000`")
	}
	length, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || length < 1 {
		return "", fmt.Errorf("“%s” is not a number of nanoseconds", words[0])
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
