// A buffered channel, polled: `channel CPU_A CPU_B CAPACITY CAPACITY` (of the round trips, and of the
// stream) prints the time of a round trip and the messages per
// second between two goroutines that each keep a thread on one of the CPUs; before, between and
// after them, the time of an atomic number from one to the other.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	rounds = 200
	length = 5 * time.Millisecond
)

func channel(capacity string) chan int {
	number, err := strconv.Atoi(capacity)
	if err != nil {
		panic(capacity + " is no capacity")
	}
	return make(chan int, number)
}

func put(messages chan int, message int) {
	for {
		select {
		case messages <- message:
			return
		default:
		}
	}
}

func get(messages chan int) int {
	for {
		select {
		case message := <-messages:
			return message
		default:
		}
	}
}

func pin(cpu string) {
	runtime.LockOSThread()
	number, err := strconv.Atoi(cpu)
	mask := uint64(1) << number
	if _, _, code := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, 8,
		uintptr(unsafe.Pointer(&mask))); err != nil || code != 0 {
		panic("cannot run on CPU " + cpu)
	}
}

func median(figures []float64) float64 {
	sort.Float64s(figures)
	return figures[len(figures)/2]
}

var numbers [2]struct {
	at atomic.Int64
	_  [120]byte
}

// Echoes numbers until one is negative.
func reflect() {
	for next := int64(1); ; next++ {
		number := numbers[0].at.Load()
		for number != next && number >= 0 {
			number = numbers[0].at.Load()
		}
		numbers[1].at.Store(number)
		if number < 0 {
			return
		}
	}
}

func handOff() float64 {
	var all []float64
	next := int64(1)
	for begun := time.Now(); time.Since(begun) < 20*time.Millisecond; {
		stretch := time.Now()
		for trip := 0; trip < 32; trip++ {
			numbers[0].at.Store(next)
			for numbers[1].at.Load() != next {
			}
			next++
		}
		all = append(all, float64(time.Since(stretch))/64)
	}
	numbers[0].at.Store(-1)
	for numbers[1].at.Load() >= 0 {
	}
	numbers[0].at.Store(0)
	return median(all)
}

func main() {
	there, back := channel(os.Args[3]), channel(os.Args[3])
	stream := channel(os.Args[4])
	var stop atomic.Bool
	go func() {
		pin(os.Args[1])
		reflect()
		for message := get(there); message >= 0; message = get(there) {
			put(back, message)
		}
		reflect()
		for range back {
			stop.Store(false)
			number := 0
			for !stop.Load() {
				for i := 0; i < 64; i++ {
					put(stream, number)
					number++
				}
			}
			put(stream, -1)
		}
		reflect()
	}()
	done := make(chan bool)
	go func() {
		pin(os.Args[2])
		fmt.Println("hand_off_ns", handOff())
		var all []float64
		for round := 0; round < rounds; round++ {
			trips, begun := 0, time.Now()
			for time.Since(begun) < length {
				for i := 0; i < 16; i++ {
					put(there, trips)
					if get(back) != trips {
						panic("a wrong echo")
					}
					trips++
				}
			}
			all = append(all, float64(time.Since(begun))/float64(trips))
		}
		fmt.Println("round_trip_ns", median(all[rounds/2:]))
		put(there, -1)
		fmt.Println("hand_off_ns", handOff())
		all = nil
		for round := 0; round < rounds; round++ {
			back <- 0
			count, begun := 0, time.Now()
			for time.Since(begun) < length {
				for i := 0; i < 100; i++ {
					if get(stream) != count {
						panic("a wrong message")
					}
					count++
				}
			}
			all = append(all, float64(count)/time.Since(begun).Seconds())
			stop.Store(true)
			for get(stream) >= 0 {
			}
		}
		fmt.Println("rate_per_s", median(all[rounds/2:]))
		close(back)
		fmt.Println("hand_off_ns", handOff())
		close(done)
	}()
	<-done
}
