package program

import (
	"fmt"
	"sort"
	"strings"
)

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

func atLeast(least, number int64) int64 {
	if number < least {
		return least
	}
	return number
}
