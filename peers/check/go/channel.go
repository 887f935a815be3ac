// A buffered channel, polled, between two goroutines that each keep a thread on one of the CPUs:
//
//	channel ask-reply|stream CPU_A CPU_B MICROSECONDS CAPACITY
//
// prints, block by block, the time of a round trip or per message (`time_ns`), and before, between
// and after the blocks the time of an atomic number from one CPU to the other (`hand_off_ns`).
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

const blocks, warmUp = 200, 100

// Of a block.
var length time.Duration

func number(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		panic(text + " is no number")
	}
	return number
}

// A queue is called through an interface, as the peer is.
type queue interface {
	put(message int)
	get() int
}

type polled struct {
	messages chan int
	spins    int
}

func channel(capacity string) queue { return polled{make(chan int, number(capacity)), 0} }

func (p polled) put(message int) {
	for {
		select {
		case p.messages <- message:
			return
		default:
			p.spin()
		}
	}
}

func (p polled) get() int {
	for {
		select {
		case message := <-p.messages:
			return message
		default:
			p.spin()
		}
	}
}

func (p polled) spin() {
	for i := 0; i < p.spins; i++ {
	}
}

func pin(cpu string) {
	runtime.LockOSThread()
	mask := uint64(1) << number(cpu)
	if _, _, code := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, 8,
		uintptr(unsafe.Pointer(&mask))); code != 0 {
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
	for begun := time.Now(); time.Since(begun) < time.Millisecond; {
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

func ask(there, back queue) float64 {
	trips, begun := 0, time.Now()
	for time.Since(begun) < length {
		for i := 0; i < 16; i++ {
			there.put(trips)
			if back.get() != trips {
				panic("a wrong echo")
			}
			trips++
		}
	}
	time := float64(time.Since(begun)) / float64(trips)
	there.put(-1)
	return time
}

func echo(there, back queue) {
	for message := there.get(); message >= 0; message = there.get() {
		back.put(message)
	}
}

var stop atomic.Bool

func feed(messages queue) {
	for number := 0; !stop.Load(); {
		for i := 0; i < 64; i++ {
			messages.put(number)
			number++
		}
	}
	messages.put(-1)
}

func drink(messages queue) float64 {
	count, begun := 0, time.Now()
	for time.Since(begun) < length {
		for i := 0; i < 1000; i++ {
			if messages.get() != count {
				panic("a wrong message")
			}
			count++
		}
	}
	time := float64(time.Since(begun)) / float64(count)
	stop.Store(true)
	for messages.get() >= 0 {
	}
	stop.Store(false)
	return time
}

func main() {
	length = time.Duration(number(os.Args[4])) * time.Microsecond
	there, back := channel(os.Args[5]), channel(os.Args[5])
	measured := func() float64 { return ask(there, back) }
	other := func() { echo(there, back) }
	cpus := os.Args[2:4]
	if os.Args[1] == "stream" {
		measured = func() float64 { return drink(there) }
		other = func() { feed(there) }
		cpus[0], cpus[1] = cpus[1], cpus[0]
	}
	go func() {
		pin(cpus[1])
		for block := 0; block < warmUp+blocks; block++ {
			reflect()
			other()
		}
		reflect()
	}()
	done := make(chan bool)
	go func() {
		pin(cpus[0])
		for block := 0; block < warmUp+blocks; block++ {
			took, time := handOff(), measured()
			if block >= warmUp {
				fmt.Printf("hand_off_ns %.1f\ntime_ns %.3f\n", took, time)
			}
		}
		fmt.Printf("hand_off_ns %.1f\n", handOff())
		close(done)
	}()
	<-done
}
