package program

import (
	"math"
	"math/rand"
)

const (
	// Most messages of a block.
	mostMessages = 50_000
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

// Messages at equal distances.
func uniform(gapNs float64) pattern {
	return drawn(func(*rand.Rand) float64 { return gapNs })
}

// Messages at exponential distances.
func poisson(gapNs float64) pattern {
	return drawn(func(random *rand.Rand) float64 { return -gapNs * math.Log(1-random.Float64()) })
}

func drawn(gap func(*rand.Rand) float64) pattern {
	return func(lengthNs int64, seed uint64) schedule {
		random := rand.New(rand.NewSource(int64(seed)))
		due := make([]int64, 0, mostMessages)
		lead, at, last := 0, 0.0, 0.0
		for {
			due = append(due, int64(at))
			at += gap(random)
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
