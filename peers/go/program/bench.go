package program

import (
	"math"
	"runtime"
)

const (
	warmBlockNs  = 20_000_000
	mostWarmUpNs = 2_000_000_000
	// Medians of this number of blocks are compared.
	level       = 5
	levelWithin = 0.05
)

// A scenario with the goroutines that run it.
type bench struct {
	scenario scenario
	crew     *crew
	seed     uint64
}

func newBench(scenario scenario, seating seating, r *request) (*bench, error) {
	parts := scenario.parts()
	cpus := r.cpus
	if r.onThreads() {
		cpus = seating(cpus, len(parts))
	}
	crew, err := newCrew(parts, cpus, r.onThreads())
	if err != nil {
		return nil, err
	}
	return &bench{scenario, crew, r.seed}, nil
}

func (b *bench) close() { b.crew.close() }

// Returns the answer, and the CPU time before the first message.
func (b *bench) run(lengthNs int64) (string, int64, error) {
	return b.work(block{lengthNs: lengthNs, seed: b.seed})
}

func (b *bench) work(block block) (string, int64, error) {
	begun := cpuTime(ofProcess)
	b.scenario.begin(block)
	// Between blocks only: channels of numbers make no garbage, this program does.
	runtime.GC()
	b.crew.settle()
	b.seed++
	before := cpuTime(ofProcess)
	b.crew.work()
	answer, err := b.scenario.end(cpuTime(ofProcess) - before)
	return answer, before - begun, err
}

// Runs blocks until their figures have levelled off.
func (b *bench) warmUp() error {
	began := nanotime()
	before := math.NaN()
	for nanotime()-began < mostWarmUpNs {
		var figures []float64
		for i := 0; i < level; i++ {
			_, _, err := b.work(block{lengthNs: warmBlockNs, seed: b.seed, warmsUp: true})
			if err != nil {
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
