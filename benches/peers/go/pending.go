// The workloads whose goroutines call while many timers are pending: W1, W12 and W14 differ in the
// calls only.
package main

import (
	"runtime"
	"time"
)

// load is how many timers are pending, how many goroutines call, and how often they do in all.
type load struct{ pending, threads, operations int }

// work is what one goroutine has to do: its own random numbers keep the goroutines apart.
type work func(number int, seed uint64, count int)

// loads returns every combination of the lists P and T.
func loads(a args, pendings, threads string, operations int) []load {
	var all []load
	for _, p := range a.list("P", pendings) {
		for _, t := range a.list("T", threads) {
			all = append(all, load{p, t, a.number("N", operations)})
		}
	}
	return all
}

func (l load) figures(workload string) figures {
	return newFigures(workload,
		param{"P", l.pending}, param{"T", l.threads}, param{"N", l.operations})
}

// count returns the operations of all goroutines together.
func (l load) count() float64 { return float64(l.operations / l.threads * l.threads) }

// part returns the goroutine's own part of the timers.
func (l load) part(timers []*time.Timer, number int) []*time.Timer {
	return timers[number*len(timers)/l.threads : (number+1)*len(timers)/l.threads]
}

// measure has each goroutine start its part of the timers, which are nil, and do a tenth of its
// operations to warm up. Then, after begin, all goroutines do all operations, and begin together. Go
// keeps a timer with the processor that the goroutine runs on.
func (l load) measure(out figures, timers []*time.Timer, begin func(), body work) {
	each := l.operations / l.threads
	prepare := func(number int) {
		refill(l.part(timers, number), uint64(1+1000*number))
		body(number, uint64(7+1000*number), each/10)
	}
	before := usageNow()
	ready := func() {
		begin()
		before = usageNow()
	}
	took := prepared(l.threads, prepare, ready, func(number int) {
		body(number, uint64(100+number), each)
	})
	after := usageNow()
	out.emit("ns_per_op", float64(took)/l.count(), "ns")
	out.emit("ns_per_op_submit", float64(took)/l.count(), "ns")
	out.emit("cpu_ns_per_op", after.since(before, l.count()).cpu, "ns")
}

// stopwatch is how long calls took: every one, or one of so many where reading the clock would be a
// large part of the cost. A time includes about one reading of the clock.
type stopwatch struct {
	every, calls int
	nanos        []int64
}

// newStopwatch times one of so many calls, of which there are at most this many.
func newStopwatch(every, most int) *stopwatch {
	return &stopwatch{every: every, nanos: make([]int64, 0, most/every+1)}
}

// begin comes before a call. It returns the zero time if the call is not timed.
func (s *stopwatch) begin() (begin time.Time) {
	s.calls++
	if s.calls == s.every {
		s.calls = 0
		begin = time.Now()
	}
	return begin
}

// end comes after it.
func (s *stopwatch) end(begin time.Time) {
	if !begin.IsZero() {
		s.nanos = append(s.nanos, int64(time.Since(begin)))
	}
}

// allTimes returns the times of several goroutines.
func allTimes(watches []*stopwatch) []int64 {
	var all []int64
	for _, watch := range watches {
		all = append(all, watch.nanos...)
	}
	return all
}

// W1: schedule a task and cancel it, while others are pending.

func w1(a args) {
	for _, l := range loads(a, "1000,100000,1000000", "1,2,4", 400_000) {
		out := l.figures("W1")
		keep := make([]*time.Timer, l.pending)
		churn := func(_ int, seed uint64, count int) {
			r := random{seed}
			for i := 0; i < count; i++ {
				time.AfterFunc(r.far(), tiny()).Stop()
			}
		}
		var heapBefore float64
		l.measure(out, keep, func() { heapBefore = heap() }, churn)
		occupied := resident()
		out.emit("retained_per_cancel", (heap()-heapBefore)/l.count(), "B")
		out.emit("rss_after", occupied, "B")
		stopAll(keep)
	}
}

// W12: cancel a pending task at random, and schedule another in its place.

func w12(a args) {
	looksAtMemory := a.number("memory", 1) == 1
	all := loads(a, "1000,10000,100000,1000000", "1,2", 400_000)
	// The memory is that of one goroutine's calls and of two together.
	for len(all) > 0 {
		same := 1
		for same < len(all) && all[same].pending == all[0].pending {
			same++
		}
		randomCancel(all[:same], looksAtMemory)
		all = all[same:]
	}
}

func randomCancel(loads []load, looksAtMemory bool) {
	timers := make([]*time.Timer, loads[0].pending)
	var heapBefore float64
	if looksAtMemory {
		// What is kept for later timers is then there before.
		refill(timers, 1)
		forget(timers)
		heapBefore = heap()
	}
	cancelled := 0.0
	for _, l := range loads {
		cancels := make([]*stopwatch, l.threads)
		replace := func(number int, seed uint64, count int) {
			cancels[number] = newStopwatch(16, count)
			replaceAtRandom(l.part(timers, number), seed, count, cancels[number])
		}
		out := l.figures("W12")
		l.measure(out, timers, func() {}, replace)
		out.distribution("cancel", allTimes(cancels))
		forget(timers)
		cancelled += float64(len(timers)) + l.count()*1.1
	}
	if looksAtMemory {
		out := newFigures("W12", param{"P", len(timers)})
		out.emit("retained_per_cancel", (heap()-heapBefore)/cancelled, "B")
	}
	runtime.KeepAlive(timers)
}

// refill schedules a timer for each place.
func refill(timers []*time.Timer, seed uint64) {
	r := random{seed}
	for i := range timers {
		timers[i] = time.AfterFunc(r.far(), tiny())
	}
}

// forget stops all timers, and forgets them.
func forget(timers []*time.Timer) {
	stopAll(timers)
	for i := range timers {
		timers[i] = nil
	}
}

func replaceAtRandom(timers []*time.Timer, seed uint64, count int, cancels *stopwatch) {
	r := random{seed}
	for i := 0; i < count; i++ {
		place := &timers[r.below(uint64(len(timers)))]
		delay := r.far()
		old := *place
		begin := cancels.begin()
		old.Stop()
		cancels.end(begin)
		*place = time.AfterFunc(delay, tiny())
	}
}

// W14: W1 with many more goroutines than cores. One of so many calls is timed: an odd number, so
// that it is the one kind of call as often as the other.

func w14(a args) {
	for _, l := range loads(a, "100000", "16", 1_600_000) {
		out := l.figures("W14")
		keep := make([]*time.Timer, l.pending)
		calls := make([]*stopwatch, l.threads)
		churn := func(number int, seed uint64, count int) {
			watch := newStopwatch(15, 2*count)
			calls[number] = watch
			r := random{seed}
			for i := 0; i < count; i++ {
				delay := r.far()
				begin := watch.begin()
				timer := time.AfterFunc(delay, tiny())
				watch.end(begin)
				begin = watch.begin()
				timer.Stop()
				watch.end(begin)
			}
		}
		l.measure(out, keep, func() {}, churn)
		out.distribution("call", allTimes(calls))
		stopAll(keep)
	}
}

// W16: schedule into an empty queue that grows.

func w16(a args) {
	tasks := a.number("N", 5_000_000)
	out := newFigures("W16", param{"N", tasks})
	keep := make([]*time.Timer, tasks)
	nanos := make([]int64, tasks)
	// Written beforehand: otherwise the kernel's time to find the memory would count as the call's.
	for i := range nanos {
		nanos[i], keep[i] = 1, nil
	}
	r := random{100}
	start := time.Now()
	last := start
	for i := range nanos {
		keep[i] = time.AfterFunc(r.far(), tiny())
		now := time.Now()
		nanos[i] = int64(now.Sub(last))
		last = now
	}
	out.emit("ns_per_op", float64(time.Since(start))/float64(tasks), "ns")
	out.distribution("call", nanos)
	stopAll(keep)
}
