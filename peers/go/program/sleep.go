package program

import (
	"runtime"
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

// A thread that is kept stays on its CPU: the runtime would hand over to another one and back.
func (r *request) yield() func() {
	if r.onThreads() {
		return func() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
	}
	return runtime.Gosched
}
