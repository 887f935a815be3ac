package program

import (
	"fmt"
	"strconv"
	"strings"
)

const mostCapacity = 1 << 26

// A request to prepare a scenario of a queue.
type request struct {
	*keys
	queue    *Queue
	cpus     []int
	wait     string
	capacity int
}

// Makes a queue as requested.
func (r *request) open() Channel { return r.queue.Open(r.wait, r.capacity) }

// True if each part keeps its thread, whose CPU time is then that of the part.
func (r *request) onThreads() bool { return r.queue.Threads && len(r.cpus) > 0 }

func (p *program) prepare(words []string) (*bench, error) {
	if len(words) < 3 || words[0] != "queue" {
		return nil, fmt.Errorf("this program prepares queues only: `prepare queue NAME SCENARIO …`")
	}
	queue := p.queue(words[1])
	if queue == nil {
		return nil, fmt.Errorf("%s is not a peer of this program", words[1])
	}
	if words[2] != "ask-reply" && words[2] != "stream" {
		return nil, fmt.Errorf("%s is not a scenario of %s", words[2], queue.Name)
	}
	r := &request{keys: newKeys(words[3:]), queue: queue}
	r.cpus = r.cpuList("cpus")
	r.wait = r.word("wait", queue.Waits...)
	if queue.SlotBytes > 0 {
		r.capacity = int(r.number("capacity", 1, mostCapacity))
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return newBench(r.scenario(words[2]), r)
}

func (p *program) queue(name string) *Queue {
	for i := range p.peers {
		if p.peers[i].Name == name {
			return &p.peers[i]
		}
	}
	return nil
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

func (k *keys) word(key string, known ...string) string {
	text := k.text(key)
	for _, one := range known {
		if text == one {
			return text
		}
	}
	k.fail("%s=%s is impossible: it is %s", key, text, strings.Join(known, " or "))
	return text
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

// CPUs for the threads; none if they are not pinned.
func (k *keys) cpuList(key string) []int {
	text := k.text(key)
	if text == "" {
		return nil
	}
	var cpus []int
	for _, word := range strings.Split(text, ",") {
		cpu, err := strconv.ParseUint(word, 10, 16)
		if err != nil || cpu >= maxCPUs {
			k.fail("%s=%s is not a list of CPUs", key, text)
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
