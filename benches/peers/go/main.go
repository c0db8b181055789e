// Measures Go's timers: `go-peer go <workload> key=value…`.
//
// The workloads are those of the Rust program, with the same delays. A task is time.AfterFunc,
// cancelling is Timer.Stop, and the number of workers is GOMAXPROCS, which the submitting goroutine
// shares. For W9 this program has a delay queue of its own, because Go's library has none.
package main

import (
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

const peer = "go"

var workloads = map[string]func(args){
	"w1": w1, "w2": w2, "w3": w3, "w4": w4, "w5": w5, "w6": w6, "w7": w7, "w8": w8,
	"w9": w9, "w12": w12, "w13": w13, "w14": w14, "w15": w15, "w16": w16,
}

func main() {
	runtime.GOMAXPROCS(2)
	workloads[os.Args[2]](parseArgs(os.Args[3:]))
}

var sink int64

// tiny returns a new closure each time, as in the other languages.
func tiny() func() {
	one := atomic.LoadInt64(&sink) | 1
	return func() { atomic.AddInt64(&sink, one) }
}

func fill(count int) []*time.Timer {
	timers := make([]*time.Timer, count)
	refill(timers, 1)
	return timers
}

func stopAll(timers []*time.Timer) {
	for _, timer := range timers {
		timer.Stop()
	}
}

// W2: schedule when nothing is pending.

func w2(a args) {
	tasks := a.number("N", 1_000_000)
	isAgain := a.text("mode", "first") == "again"
	for _, threads := range a.list("T", "1,2,4") {
		each := tasks / threads
		keep := make([][]*time.Timer, threads)
		for i := range keep {
			keep[i] = make([]*time.Timer, each)
		}
		var heapBefore, residentBefore float64
		before := usageNow()
		fill := func(number int) {
			r := random{uint64(100 + number)}
			timers := keep[number]
			for i := range timers {
				timers[i] = time.AfterFunc(r.far(), tiny())
			}
		}
		prepare := func(number int) {
			if isAgain {
				fill(number)
				stopAll(keep[number])
			}
		}
		begin := func() {
			if !isAgain { // This gives memory back to the system.
				heapBefore = heap()
			}
			residentBefore, before = resident(), usageNow()
		}
		took := prepared(threads, prepare, begin, fill)
		after := usageNow()
		occupied := resident() - residentBefore
		count := float64(each * threads)
		out := newFigures("W2", param{"T", threads}, param{"N", tasks})
		out.emit("ns_per_op", float64(took)/count, "ns")
		out.emit("ns_per_op_submit", float64(took)/count, "ns")
		out.emit("cpu_ns_per_op", after.since(before, count).cpu, "ns")
		if threads == 1 && !isAgain {
			out.emit("bytes_per_task", (heap()-heapBefore)/count, "B")
			out.emit("rss_bytes_per_task", occupied/count, "B")
		}
		for _, timers := range keep {
			stopAll(timers)
		}
	}
}

// W3: one goroutine schedules, the processors run.

func w3(a args) {
	tasks := a.number("N", 1_000_000)
	span := time.Duration(a.number("ms", 1000)) * time.Millisecond
	mode := a.text("mode", "zero")
	for _, workers := range a.list("W", "1,2") {
		runtime.GOMAXPROCS(workers)
		out := newFigures("W3-"+mode, param{"W", workers}, param{"N", tasks})
		zero(20_000)
		before := usageNow()
		var took time.Duration
		switch mode {
		case "zero":
			var submitted time.Duration
			submitted, took = zero(tasks)
			out.emit("submit_ns", float64(submitted)/float64(tasks), "ns")
		case "atonce":
			took = atOnce(tasks, span)
		default:
			took = spread(tasks, span, out)
		}
		used := usageNow().since(before, float64(tasks))
		out.emit("tasks_per_s", float64(tasks)/took.Seconds(), "1/s")
		out.emit("cpu_ns_per_task", used.cpu, "ns")
		out.emit("vcsw_per_task", used.sleeps, "1")
	}
}

func zero(tasks int) (submitted, took time.Duration) {
	all := newDone(tasks)
	start := time.Now()
	for i := 0; i < tasks; i++ {
		time.AfterFunc(0, func() { all.hit() })
	}
	submitted = time.Since(start)
	all.wait()
	return submitted, time.Since(start)
}

func atOnce(tasks int, ahead time.Duration) time.Duration {
	all := newDone(tasks)
	due := time.Now().Add(ahead)
	for i := 0; i < tasks; i++ {
		time.AfterFunc(time.Until(due), func() { all.hit() })
	}
	start := time.Now()
	if start.Before(due) {
		start = due
	}
	all.wait()
	return time.Since(start)
}

func spread(tasks int, span time.Duration, out figures) time.Duration {
	all := newDone(tasks)
	late := make([]int64, tasks)
	r := random{5}
	if span > math.MaxUint32 {
		span = math.MaxUint32
	}
	start := time.Now()
	for i := range late {
		delay := time.Duration(r.below(uint64(span)))
		slot := &late[i]
		due := time.Now().Add(delay)
		time.AfterFunc(delay, func() {
			*slot = int64(time.Since(due))
			all.hit()
		})
	}
	all.wait()
	took := time.Since(start)
	out.distribution("late", late)
	return took
}

// W4: tasks at random instants.

func w4(a args) {
	tasks, ms := a.number("N", 1000), a.number("ms", 10_000)
	late := make([]int64, tasks)
	all := newDone(tasks)
	r := random{9}
	base := time.Now().Add(200 * time.Millisecond)
	before := usageNow()
	for i := range late {
		due := base.Add(time.Duration(r.below(uint64(ms)*1000)) * time.Microsecond)
		slot := &late[i]
		time.AfterFunc(time.Until(due), func() {
			*slot = int64(time.Since(due))
			all.hit()
		})
	}
	all.wait()
	used := usageNow().since(before, float64(tasks))
	out := newFigures("W4", param{"N", tasks}, param{"ms", ms}, param{"W", 2})
	out.distribution("late", late)
	out.emit("cpu_us_per_task", used.cpu/1e3, "us")
	out.emit("vcsw_per_task", used.sleeps, "1")
}

// W5: periodic tasks. Each run resets its timer to the next instant of the grid.

type periodic struct {
	period time.Duration
	due    time.Time
	late   []int64
	// The first run may come before the timer is known.
	self  chan *time.Timer
	timer *time.Timer
	total *int64
	stop  *int32
}

func (p *periodic) run() {
	if p.timer == nil {
		p.timer = <-p.self
	}
	if len(p.late) < cap(p.late) {
		p.late = append(p.late, int64(time.Since(p.due)))
	}
	atomic.AddInt64(p.total, 1)
	p.due = p.due.Add(p.period)
	if atomic.LoadInt32(p.stop) == 0 {
		p.timer.Reset(time.Until(p.due))
	}
}

// startPeriodic starts timers with random phases. Their first runs come within a period after base.
func startPeriodic(tasks, capacity int, period time.Duration, base time.Time) []*periodic {
	total, stop := new(int64), new(int32)
	all := make([]*periodic, tasks)
	for i := range all {
		late := make([]int64, 0, capacity)
		self := make(chan *time.Timer, 1)
		all[i] = &periodic{period: period, late: late, self: self, total: total, stop: stop}
	}
	r := random{3}
	for _, p := range all {
		p.due = base.Add(time.Duration(r.below(uint64(period))))
		p.self <- time.AfterFunc(time.Until(p.due), p.run)
	}
	return all
}

// stopPeriodic ends all timers, and returns how late each run was.
func stopPeriodic(all []*periodic) []int64 {
	atomic.StoreInt32(all[0].stop, 1)
	time.Sleep(2*all[0].period + 20*time.Millisecond)
	var late []int64
	for _, p := range all {
		late = append(late, p.late...)
	}
	return late
}

func w5(a args) {
	tasks, us, ms := a.number("N", 100), a.number("us", 10_000), a.number("ms", 10_000)
	base := time.Now().Add(50 * time.Millisecond)
	before := usageNow()
	all := startPeriodic(tasks, ms*1000/us+50, time.Duration(us)*time.Microsecond, base)
	time.Sleep(time.Until(base.Add(time.Duration(ms) * time.Millisecond)))
	runs := float64(atomic.LoadInt64(all[0].total))
	used := usageNow().since(before, runs)
	out := newFigures("W5", param{"N", tasks}, param{"us", us}, param{"ms", ms}, param{"W", 2})
	out.distribution("late", stopPeriodic(all))
	out.emit("runs_vs_expected", runs/(float64(tasks)*float64(ms)*1e3/float64(us)), "1")
	out.emit("cpu_us_per_run", used.cpu/1e3, "us")
	out.emit("vcsw_per_run", used.sleeps, "1")
}

// W6: submit a task and wait for its result.

func submit() chan int {
	result := make(chan int, 1)
	time.AfterFunc(0, func() { result <- 1 })
	return result
}

func ping() int64 {
	start := time.Now()
	<-submit()
	return int64(time.Since(start))
}

func pipeline(count, window int) float64 {
	results := make([]chan int, window)
	finished := 0
	start := time.Now()
	for finished < count {
		for i := range results {
			results[i] = submit()
		}
		for i := range results {
			<-results[i]
		}
		finished += window
	}
	return float64(finished) / time.Since(start).Seconds()
}

func w6(a args) {
	pings, gaps := a.number("N", 20_000), a.number("gaps", 1000)
	gap := time.Duration(a.number("gap_us", 300)) * time.Microsecond
	piped, window := a.number("pipe", 300_000), a.number("win", 256)
	for i := 0; i < pings/10; i++ {
		ping()
	}
	out := newFigures("W6", param{"W", 2})
	trips := make([]int64, pings)
	before := usageNow()
	for i := range trips {
		trips[i] = ping()
	}
	used := usageNow().since(before, float64(pings))
	out.distribution("ping", trips)
	out.emit("ping_cpu_us", used.cpu/1e3, "us")
	trips = make([]int64, gaps)
	for i := range trips {
		time.Sleep(gap)
		trips[i] = ping()
	}
	out.distribution("gap_ping", trips)
	pipeline(piped/10, window)
	out.emit("pipelined_per_s", pipeline(piped, window), "1/s")
}

// W7: timeouts that nearly never fire.

func timeouts(seed uint64, operations int) {
	r := random{seed}
	var buckets [128][]*time.Timer
	for i := 0; i < operations; i++ {
		timeout := time.AfterFunc(30*time.Second, tiny())
		later := (uint64(i) + r.below(101)) & 127
		buckets[later] = append(buckets[later], timeout)
		now := buckets[i&127]
		for j, timer := range now {
			timer.Stop()
			now[j] = nil
		}
		buckets[i&127] = now[:0]
	}
	for _, bucket := range buckets {
		stopAll(bucket)
	}
}

func w7(a args) {
	operations, outstanding := a.number("N", 200_000), a.number("P", 10_000)
	for _, threads := range a.list("T", "1,2") {
		keep := make([][]*time.Timer, threads)
		prepare := func(number int) {
			r := random{uint64(1 + 1000*number)}
			own := make([]*time.Timer, share(outstanding, threads, number))
			for i := range own {
				micros := time.Duration(25_000_000 + r.below(5_000_000))
				own[i] = time.AfterFunc(micros*time.Microsecond, tiny())
			}
			keep[number] = own
			timeouts(uint64(2+1000*number), operations/4/threads)
		}
		before := usageNow()
		begin := func() { before = usageNow() }
		took := prepared(threads, prepare, begin, func(number int) {
			timeouts(uint64(50+number), operations/threads)
		})
		used := usageNow().since(before, float64(operations))
		out := newFigures("W7",
			param{"P", outstanding}, param{"T", threads}, param{"N", operations})
		out.emit("ns_per_op", float64(took)/float64(operations), "ns")
		out.emit("cpu_ns_per_op", used.cpu, "ns")
		for _, timers := range keep {
			stopAll(timers)
		}
	}
}

// W8: stop everything. There is no executor to shut down, so this stops all timers.

func w8(a args) {
	pending := a.number("P", 1_000_000)
	timers := fill(pending)
	time.Sleep(50 * time.Millisecond)
	start := time.Now()
	stopAll(timers)
	took := time.Since(start)
	newFigures("W8", param{"P", pending}).emit("shutdown_ms", took.Seconds()*1e3, "ms")
}
