// By the second argument. channel: six goroutines send to each other in a circle of full channels:
// they stand still, while one ticks. mutex: ten goroutines take a sync.Mutex across a sleep of 2
// ms; nine wait. From outside, either shows as parked threads.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var (
	mutex  sync.Mutex
	waited atomic.Int64
	ticks  atomic.Int64
)

func pass(from <-chan int, to chan<- int) {
	for {
		to <- 1
		to <- 1
		<-from
	}
}

func hold() {
	for {
		asked := time.Now()
		mutex.Lock()
		waited.Add(int64(time.Since(asked)))
		time.Sleep(2 * time.Millisecond)
		mutex.Unlock()
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	begun := time.Now()
	if os.Args[2] == "channel" {
		var channels [6]chan int
		for i := range channels {
			channels[i] = make(chan int, 1)
		}
		for i := range channels {
			go pass(channels[i], channels[(i+1)%len(channels)])
		}
		go func() {
			for range time.Tick(5 * time.Millisecond) {
				ticks.Add(1)
			}
		}()
	} else {
		for i := 0; i < 10; i++ {
			go hold()
		}
	}
	time.Sleep(time.Duration(seconds * 1e9))
	fmt.Printf("truth: %d ticks, %.2f goroutines wait for the mutex\n", ticks.Load(),
		float64(waited.Load())/float64(time.Since(begun)))
}
