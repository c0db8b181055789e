package main

import (
	"fmt"
	"runtime"
	"sort"
	"sync/atomic"
	"time"
)

// W9: delay queues.

func w9(a args) {
	if a.text("mode", "fill") == "mixed" {
		w9Mixed(a)
		return
	}
	elements := a.number("N", 1_000_000)
	for _, threads := range a.list("T", "1,2") {
		out := newFigures("W9", param{"T", threads}, param{"N", elements})
		var both, push, take []float64
		for i := -2; i < 5; i++ {
			pushed, taken := fillAndEmpty(elements, threads)
			if i >= 0 {
				push = append(push, float64(pushed)/float64(elements))
				take = append(take, float64(taken)/float64(elements))
				both = append(both, float64(pushed+taken)/float64(elements))
			}
		}
		out.emit("ns_per_op", median(both), "ns")
		out.emit("push_ns", median(push), "ns")
		out.emit("take_ns", median(take), "ns")
		if threads == 1 {
			memory(out, elements)
		}
	}
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

func fillAndEmpty(elements, threads int) (pushed, taken time.Duration) {
	q := newDelayQueue()
	pushed = together(threads, func(number int) { pushEach(q, elements, number, threads) })
	letExpire(elements)
	var count int64
	taken = together(threads, func(int) { atomic.AddInt64(&count, takeAll(q)) })
	if count != int64(elements) {
		panic(fmt.Sprintf("%d of %d elements came out", count, elements))
	}
	return pushed, taken
}

// pushEach inserts this goroutine's elements: with two goroutines every second element, so that the
// delays of both grow alike.
func pushEach(q *delayQueue, elements, number, threads int) {
	for i := number; i < elements; i += threads {
		q.push(uint64(i), time.Duration(i))
	}
}

// letExpire sleeps as long as in the other languages.
func letExpire(elements int) {
	time.Sleep(time.Duration(elements) + 2*time.Millisecond)
}

func takeAll(q *delayQueue) (taken int64) {
	for {
		if _, wait := q.poll(); wait != 0 {
			return taken
		}
		taken++
	}
}

func mallocs() float64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.Mallocs)
}

func memory(out figures, elements int) {
	heapBefore, mallocsBefore := heap(), mallocs()
	q := newDelayQueue()
	pushEach(q, elements, 0, 1)
	mallocsPush := mallocs() - mallocsBefore
	bytes := heap() - heapBefore
	letExpire(elements)
	mallocsBefore = mallocs()
	takeAll(q)
	mallocsTake := mallocs() - mallocsBefore
	out.emit("bytes_per_element", bytes/float64(elements), "B")
	out.emit("allocs_per_element", (mallocsPush+mallocsTake)/float64(elements), "1")
}

func w9Mixed(a args) {
	pending, operations := a.number("P", 100_000), a.number("N", 400_000)
	for _, threads := range a.list("T", "1,2") {
		q := newDelayQueue()
		prepare := func(number int) {
			r := random{uint64(1 + 1000*number)}
			for i := share(pending, threads, number); i > 0; i-- {
				q.push(uint64(i), r.far())
			}
			insertAndRemove(q, uint64(2+1000*number), operations/4/threads)
		}
		took := prepared(threads, prepare, func() {}, func(number int) {
			insertAndRemove(q, uint64(50+number), operations/threads)
		})
		out := newFigures("W9-mixed",
			param{"P", pending}, param{"T", threads}, param{"N", operations})
		out.emit("ns_per_op", float64(took)/float64(operations), "ns")
	}
}

func insertAndRemove(q *delayQueue, seed uint64, operations int) {
	r := random{seed}
	var items [100]*item
	for i := 0; i < operations; i++ {
		slot := &items[i%len(items)]
		added := q.push(uint64(i), r.far())
		if *slot != nil {
			q.remove(*slot)
		}
		*slot = added
	}
	for _, left := range items {
		if left != nil {
			q.remove(left)
		}
	}
}
