package program

import (
	"syscall"
	"time"
)

// The runtime's timers end up to a millisecond late on Linux. Goroutines use them all the same, as
// those of a program would; the kernel's make a sender on a thread of its own more punctual.
func (r *request) sleep() func(ns int64) {
	if r.onThreads() {
		return sleepThread
	}
	return func(ns int64) { time.Sleep(time.Duration(ns)) }
}

// May end early.
func sleepThread(ns int64) {
	length := syscall.NsecToTimespec(ns)
	_ = syscall.Nanosleep(&length, nil)
}
