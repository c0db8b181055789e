// The parts that the workloads share.
package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// random is splitmix64, as in the other languages.
type random struct{ state uint64 }

func (r *random) below(n uint64) uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return (((z ^ (z >> 31)) >> 32) * n) >> 32
}

// far returns one to two hours.
func (r *random) far() time.Duration {
	return time.Duration(3_600_000_000+r.below(3_600_000_000)) * time.Microsecond
}

// args are the parameters of a workload: key=value.
type args map[string]string

func parseArgs(words []string) args {
	parsed := args{}
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		if !found {
			panic("not key=value: " + word)
		}
		parsed[key] = value
	}
	return parsed
}

func (a args) text(key, normal string) string {
	if value, given := a[key]; given {
		return value
	}
	return normal
}

func (a args) number(key string, normal int) int {
	return a.list(key, strconv.Itoa(normal))[0]
}

func (a args) list(key, normal string) []int {
	var numbers []int
	for _, word := range strings.Split(a.text(key, normal), ",") {
		number, err := strconv.Atoi(word)
		if err != nil {
			panic(err)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

// figures are the figures of one measurement.
type figures struct {
	workload string
	params   string
}

type param struct {
	key   string
	value int
}

func newFigures(workload string, params ...param) figures {
	var pairs []string
	for _, p := range params {
		pairs = append(pairs, fmt.Sprintf("%q:%d", p.key, p.value))
	}
	return figures{workload, strings.Join(pairs, ",")}
}

func (f figures) emit(metric string, value float64, unit string) {
	fmt.Printf(
		"{\"peer\":%q,\"workload\":%q,\"params\":{%s},\"metric\":%q,\"value\":%.3f,\"unit\":%q}\n",
		peer, f.workload, f.params, metric, value, unit)
}

// distribution returns the percentiles of nanoseconds, in microseconds.
func (f figures) distribution(what string, nanos []int64) {
	sort.Slice(nanos, func(i, j int) bool { return nanos[i] < nanos[j] })
	micros := func(rank int) float64 { return float64(nanos[rank-1]) / 1e3 }
	names := []string{"p50", "p90", "p99", "p999"}
	for i, share := range []float64{0.5, 0.9, 0.99, 0.999} {
		rank := int(math.Ceil(float64(len(nanos)) * share))
		if rank < 1 {
			rank = 1
		}
		f.emit(what+"_"+names[i], micros(rank), "us")
	}
	// With fewer values this would be one of the last ten.
	if len(nanos) >= 100_000 {
		f.emit(what+"_p9999", micros(int(math.Ceil(float64(len(nanos))*0.9999))), "us")
	}
	f.emit(what+"_max", micros(len(nanos)), "us")
	f.emit(what+"_min", micros(1), "us")
}

// usage is the resources that all threads of the process have used so far.
type usage struct {
	cpu    float64
	sleeps float64
}

func usageNow() usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return usage{float64(u.Utime.Nano() + u.Stime.Nano()), float64(u.Nvcsw)}
}

// since returns the usage since an earlier moment, per item, for count items.
func (u usage) since(before usage, count float64) usage {
	return usage{(u.cpu - before.cpu) / count, (u.sleeps - before.sleeps) / count}
}

// resident returns the bytes of memory that the process occupies.
func resident() float64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		panic(err)
	}
	return float64(pages * os.Getpagesize())
}

// heap returns the bytes of the heap that are in use, after a collection.
func heap() float64 {
	runtime.GC()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// done waits until this many tasks have run.
type done struct {
	count, target int64
	all           chan struct{}
}

func newDone(target int) *done {
	return &done{0, int64(target), make(chan struct{})}
}

func (d *done) hit() {
	if atomic.AddInt64(&d.count, 1) == d.target {
		close(d.all)
	}
}

func (d *done) wait() { <-d.all }

// together runs the body in goroutines that begin together, and returns how long they took.
func together(count int, body func(number int)) time.Duration {
	return prepared(count, func(int) {}, func() {}, body)
}

// share is how many of count the goroutine of this number has, of so many goroutines.
func share(count, threads, number int) int {
	if number < count%threads {
		return count/threads + 1
	}
	return count / threads
}

// prepared does the same, but each goroutine does prepare first. When all are ready, begin is called,
// and then they begin together.
func prepared(count int, prepare func(number int), begin func(), body func(number int)) time.Duration {
	var ready, finished sync.WaitGroup
	start := make(chan struct{})
	ready.Add(count)
	finished.Add(count)
	for i := 0; i < count; i++ {
		go func(number int) {
			prepare(number)
			ready.Done()
			<-start
			body(number)
			finished.Done()
		}(i)
	}
	ready.Wait()
	begin()
	began := time.Now()
	close(start)
	finished.Wait()
	return time.Since(began)
}
