// Goroutines that take turns at a mutex, hold it while they sleep, and compute outside it.
package main

import (
	"log"
	"os"
	"strconv"
	"sync"
	"time"
)

func work(length time.Duration) {
	for end := time.Now().Add(length); time.Now().Before(end); {
	}
}

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	seconds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	var mutex sync.Mutex
	var workers sync.WaitGroup
	for range count {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for time.Now().Before(end) {
				mutex.Lock()
				time.Sleep(time.Millisecond)
				mutex.Unlock()
				work(time.Millisecond)
			}
		}()
	}
	workers.Wait()
}
