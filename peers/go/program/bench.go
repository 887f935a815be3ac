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
}

func newBench(scenario scenario, r *request) (*bench, error) {
	crew, err := newCrew(scenario.parts(), r.cpus, r.onThreads())
	if err != nil {
		return nil, err
	}
	return &bench{scenario, crew}, nil
}

func (b *bench) close() { b.crew.close() }

// Returns the answer, and the CPU time before the first message.
func (b *bench) run(lengthNs int64) (string, int64, error) {
	begun := cpuTime()
	b.scenario.begin(lengthNs)
	// Between blocks only: channels of numbers make no garbage, this program does.
	runtime.GC()
	b.crew.settle()
	before := cpuTime()
	b.crew.work()
	answer, err := b.scenario.end()
	return answer, before - begun, err
}

// Runs blocks until their figures have levelled off.
func (b *bench) warmUp() error {
	began := nanotime()
	before := math.NaN()
	for nanotime()-began < mostWarmUpNs {
		var figures []float64
		for i := 0; i < level; i++ {
			if _, _, err := b.run(warmBlockNs); err != nil {
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
