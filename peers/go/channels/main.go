// Go's channels, buffered and not.
//
// The rows in goroutines are what a Go program does: its scheduler decides on which of the CPUs an
// end runs, and both may take turns on one. In the rows on threads each end keeps a thread, which
// keeps a CPU; the scheduler then needs the kernel to switch from one end to the other.
package main

import "peers/program"

// Flags of the build, from build.sh.
var flags string

const backoff = 100

type blocking chan uint64

func (c blocking) Send(message uint64) { c <- message }
func (c blocking) Receive() uint64     { return <-c }

type polling struct {
	messages chan uint64
	pauses   uint32
}

func (c polling) Send(message uint64) {
	for {
		select {
		case c.messages <- message:
			return
		default:
			if c.pauses > 0 {
				program.Pause(c.pauses)
			}
		}
	}
}

func (c polling) Receive() uint64 {
	for {
		select {
		case message := <-c.messages:
			return message
		default:
			if c.pauses > 0 {
				program.Pause(c.pauses)
			}
		}
	}
}

func open(wait string, capacity int) program.Channel {
	messages := make(chan uint64, capacity)
	switch wait {
	case "poll":
		return polling{messages, 0}
	case "poll-backoff":
		return polling{messages, backoff}
	}
	return blocking(messages)
}

func main() {
	buffered := program.Queue{
		Name:      "go-channel",
		Sentence:  "buffered channel between goroutines that the scheduler places on the CPUs",
		SlotBytes: 8,
		Waits:     []string{"poll", "poll-backoff", "block"},
		Open:      open,
	}
	// With polling at both ends, neither would ever meet its partner.
	unbuffered := program.Queue{
		Name:     "go-channel-unbuffered",
		Sentence: "unbuffered channel between goroutines: hands each message over, and holds none",
		Waits:    []string{"block"},
		Open:     open,
	}
	onThread := func(queue program.Queue, sentence string) program.Queue {
		queue.Name += "-pinned"
		queue.Sentence = sentence
		queue.Threads = true
		return queue
	}
	program.Run(flags, []program.Queue{
		buffered,
		onThread(buffered, "buffered channel between goroutines that each keep a thread and a CPU"),
		unbuffered,
		onThread(unbuffered, "unbuffered channel between goroutines that each keep a thread and a CPU"),
	})
}
