// The workloads whose timers run: a service's mix of calls, and bursts.
package main

import (
	"math"
	"runtime"
	"sort"
	"sync/atomic"
	"time"
)

// W13: the mix of calls that a service makes.

const (
	// oneShot: one operation of so many schedules a task that runs.
	oneShot = 10
	// stays: one operation of so many schedules a timeout that stays.
	stays = 100
)

// trace is one submitting goroutine's calls.
type trace struct {
	late               []int64
	all                *done
	schedules, cancels *stopwatch
	buckets            [128][]*time.Timer
}

func newTrace(operations int, all *done) *trace {
	return &trace{
		late:      make([]int64, (operations+oneShot-1)/oneShot),
		all:       all,
		schedules: newStopwatch(1, operations),
		cancels:   newStopwatch(1, operations),
	}
}

func (t *trace) submit(seed uint64, operations, burst int, period time.Duration) {
	r := random{seed}
	next := time.Now()
	for i := 0; i < operations; i++ {
		if i%oneShot == 0 {
			delay := time.Duration(1000+r.below(19_000)) * time.Microsecond
			t.oneShot(&t.late[i/oneShot], delay)
		} else {
			t.timeout(i, int(r.below(101)))
		}
		now := t.buckets[i&127]
		for j, timer := range now {
			begin := t.cancels.begin()
			timer.Stop()
			t.cancels.end(begin)
			now[j] = nil
		}
		t.buckets[i&127] = now[:0]
		if (i+1)%burst == 0 {
			next = next.Add(period)
			time.Sleep(time.Until(next))
		}
	}
	for _, bucket := range t.buckets {
		stopAll(bucket)
	}
}

func (t *trace) oneShot(slot *int64, delay time.Duration) {
	begin := t.schedules.begin()
	due := begin.Add(delay)
	time.AfterFunc(delay, func() {
		*slot = int64(time.Since(due))
		t.all.hit()
	})
	t.schedules.end(begin)
}

func (t *trace) timeout(i, later int) {
	begin := t.schedules.begin()
	timeout := time.AfterFunc(30*time.Second, tiny())
	t.schedules.end(begin)
	if i%stays != stays-1 {
		t.buckets[(i+later)&127] = append(t.buckets[(i+later)&127], timeout)
	}
}

func w13(a args) {
	operations, submitters := a.number("N", 100_000), a.number("S", 3)
	burst, us := a.number("burst", 32), a.number("us", 1000)
	newTrace(operations/10, newDone(math.MaxInt)).submit(7, operations/10, burst, 0)

	period := 10 * time.Millisecond
	took := time.Duration(operations/burst*us) * time.Microsecond
	base := time.Now().Add(50 * time.Millisecond)
	periodics := startPeriodic(100, int(took/period)+50, period, base)
	all := newDone(submitters * ((operations + oneShot - 1) / oneShot))
	traces := make([]*trace, submitters)
	for i := range traces {
		traces[i] = newTrace(operations, all)
	}
	time.Sleep(time.Until(base))
	together(submitters, func(number int) {
		traces[number].submit(uint64(50+number), operations, burst, time.Duration(us)*time.Microsecond)
	})
	all.wait()
	var schedules, cancels []*stopwatch
	var late []int64
	for _, t := range traces {
		schedules, cancels = append(schedules, t.schedules), append(cancels, t.cancels)
		late = append(late, t.late...)
	}
	out := newFigures("W13", param{"S", submitters}, param{"W", 2}, param{"N", operations})
	out.distribution("schedule", allTimes(schedules))
	out.distribution("cancel", allTimes(cancels))
	out.distribution("late", late)
	out.distribution("periodic_late", stopPeriodic(periodics))
}

// W15: tasks that are all due at one instant.

// enough: small bursts are repeated, until there were so many tasks.
const enough = 500_000

func w15(a args) {
	for _, tasks := range a.list("N", "100000,1000000") {
		for _, workers := range a.list("W", "1,2") {
			bursts(tasks, workers)
		}
	}
}

func bursts(tasks, workers int) {
	runtime.GOMAXPROCS(workers)
	zero(20_000)
	repeats := enough / tasks
	if repeats < 1 {
		repeats = 1
	}
	rates := make([]float64, repeats)
	var worst float64
	for i := range rates {
		var order []int32
		if workers == 1 {
			order = make([]int32, tasks)
		}
		rates[i] = float64(tasks) / burst(tasks, order).Seconds()
		worst = math.Max(worst, inversions(order))
	}
	sort.Float64s(rates)
	out := newFigures("W15", param{"W", workers}, param{"N", tasks})
	out.emit("tasks_per_s", rates[len(rates)/2], "1/s")
	if workers == 1 {
		out.emit("inversions", worst, "1")
	}
}

// burst writes down the order in which the tasks start, if there is a place for it.
func burst(tasks int, order []int32) time.Duration {
	all := newDone(tasks)
	var started int64
	due := time.Now().Add(time.Duration(tasks) * time.Microsecond)
	for i := 0; i < tasks; i++ {
		index := int32(i)
		task := func() { all.hit() }
		if order != nil {
			task = func() {
				order[atomic.AddInt64(&started, 1)-1] = index
				all.hit()
			}
		}
		time.AfterFunc(time.Until(due), task)
	}
	start := time.Now()
	if start.Before(due) {
		start = due
	}
	all.wait()
	return time.Since(start)
}

// inversions returns how many pairs are in the wrong order. The numbers are those below the count
// of them.
func inversions(order []int32) float64 {
	// A Fenwick tree: how many numbers of a range have come so far.
	come := make([]int, len(order)+1)
	wrong := 0
	for before, number := range order {
		smaller := 0
		for i := int(number); i > 0; i &= i - 1 {
			smaller += come[i]
		}
		wrong += before - smaller
		for i := int(number) + 1; i < len(come); i += i & -i {
			come[i]++
		}
	}
	return float64(wrong)
}
