package program

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

const maxCPUs = 1024

// The part of each end runs once a block, in a goroutine of its own that waits between blocks, and
// settles before each.
type crew struct {
	parts []func()
	start []chan func()
	done  sync.WaitGroup
}

// After an idle time, the runtime's monitor wakes 50 times, at least 20 µs apart, and then less and
// less often. If no other CPU is idle, the monitor takes the CPU of an end each time. That end may
// hold a lock for which the other end then sleeps. Programs that always have work are not affected.
const settlingNs = 6_000_000

// With threads, parts[i] keeps a thread on cpus[i]. Otherwise all threads of the process may run
// on all of these CPUs, and as many goroutines at a time as there are CPUs.
func newCrew(parts []func(), cpus []int, threads bool) (*crew, error) {
	c := &crew{parts: parts}
	confined := !threads && len(cpus) > 0
	parallel := allParallel
	switch {
	case confined:
		parallel = len(distinct(cpus))
	case threads && parallel < len(parts):
		// With fewer, a thread that could run would wait until Go's scheduler has stopped another one.
		parallel = len(parts)
	}
	runtime.GOMAXPROCS(parallel)
	if err := confine(cpus, confined); err != nil {
		return nil, err
	}
	refused := make(chan error, len(parts))
	for i := range parts {
		start := make(chan func())
		c.start = append(c.start, start)
		cpu := -1
		if threads {
			cpu = cpus[i%len(cpus)]
		}
		go func() {
			if cpu >= 0 {
				// The thread ends with the goroutine, which never unlocks it.
				runtime.LockOSThread()
				refused <- setAffinity(0, []int{cpu})
			} else {
				refused <- nil
			}
			for part := range start {
				part()
				c.done.Done()
			}
		}()
	}
	var err error
	for range parts {
		if why := <-refused; why != nil {
			err = why
		}
	}
	if err != nil {
		c.close()
	}
	return c, err
}

func (c *crew) work() {
	c.run(c.parts)
}

// Keeps all ends busy until the runtime's monitor has calmed down.
func (c *crew) settle() {
	until := nanotime() + settlingNs
	spin := func() {
		for nanotime() < until {
		}
	}
	spins := make([]func(), len(c.parts))
	for i := range spins {
		spins[i] = spin
	}
	c.run(spins)
}

func (c *crew) run(parts []func()) {
	c.done.Add(len(parts))
	for i, start := range c.start {
		start <- parts[i]
	}
	c.done.Wait()
}

func (c *crew) close() {
	for _, start := range c.start {
		close(start)
	}
}

var (
	allCPUs     = affinity()
	allParallel = runtime.GOMAXPROCS(0)
)

// Confines all threads, and so those that they start, or frees them.
func confine(cpus []int, confined bool) error {
	if !confined {
		cpus = allCPUs
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		// A thread may have ended meanwhile.
		if err := setAffinity(id, cpus); err != nil && confined && exists(id) {
			return err
		}
	}
	return nil
}

func exists(thread int) bool {
	_, err := os.Stat("/proc/self/task/" + strconv.Itoa(thread))
	return err == nil
}

func distinct(cpus []int) []int {
	sorted := append([]int(nil), cpus...)
	sort.Ints(sorted)
	var found []int
	for i, cpu := range sorted {
		if i == 0 || cpu != sorted[i-1] {
			found = append(found, cpu)
		}
	}
	return found
}

type cpuSet [maxCPUs / 64]uint64

func setAffinity(thread int, cpus []int) error {
	var set cpuSet
	for _, cpu := range cpus {
		set[cpu/64] |= 1 << (cpu % 64)
	}
	_, _, code := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(thread),
		unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
	if code != 0 {
		return fmt.Errorf("CPUs %v are not available: %w", cpus, code)
	}
	return nil
}

func affinity() []int {
	var set cpuSet
	syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0,
		unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
	var cpus []int
	for cpu := 0; cpu < maxCPUs; cpu++ {
		if set[cpu/64]&(1<<(cpu%64)) != 0 {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// CPU time of the process.
func cpuTime() int64 {
	const ofProcess = 2
	var time syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, ofProcess, uintptr(unsafe.Pointer(&time)), 0)
	return time.Nano()
}

// The runtime's monotonic clock, CLOCK_MONOTONIC.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// Pause executes a number of pause hints.
func Pause(times uint32)
