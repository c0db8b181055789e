package main

import (
	binheap "container/heap"
	"sync"
	"time"
)

// delayQueue is a delay queue as it is usually written in Go: a heap of items behind a mutex, and a
// timer for each waiting goroutine.
type delayQueue struct {
	mu    sync.Mutex
	items items
	// sooner holds a token if a new first item was inserted since the last check.
	sooner chan struct{}
}

type item struct {
	value    interface{}
	deadline time.Time
	// index is the item's position in the heap; -1 if it is not in the heap.
	index int
}

type items []*item

func (s items) Len() int           { return len(s) }
func (s items) Less(i, j int) bool { return s[i].deadline.Before(s[j].deadline) }

func (s items) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *items) Push(x interface{}) {
	added := x.(*item)
	added.index = len(*s)
	*s = append(*s, added)
}

func (s *items) Pop() interface{} {
	last := len(*s) - 1
	removed := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	removed.index = -1
	return removed
}

func newDelayQueue() *delayQueue {
	return &delayQueue{sooner: make(chan struct{}, 1)}
}

// push inserts a value that expires after the delay. The returned item serves to remove it.
func (q *delayQueue) push(value interface{}, delay time.Duration) *item {
	added := &item{value: value, deadline: time.Now().Add(delay)}
	q.mu.Lock()
	binheap.Push(&q.items, added)
	isFirst := added.index == 0
	q.mu.Unlock()
	if isFirst {
		select {
		case q.sooner <- struct{}{}:
		default:
		}
	}
	return added
}

// poll takes a value if one has expired. Otherwise it returns the time until one expires, or -1 if
// there is none.
func (q *delayQueue) poll() (value interface{}, wait time.Duration) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return nil, -1
	}
	if wait := q.items[0].deadline.Sub(now); wait > 0 {
		return nil, wait
	}
	return binheap.Pop(&q.items).(*item).value, 0
}

// take blocks until a value has expired.
func (q *delayQueue) take() interface{} {
	for {
		value, wait := q.poll()
		switch {
		case wait == 0:
			return value
		case wait < 0:
			<-q.sooner
		default:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-q.sooner:
				timer.Stop()
			}
		}
	}
}

// remove takes out an item, and returns whether it was still there.
func (q *delayQueue) remove(wanted *item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if wanted.index < 0 {
		return false
	}
	binheap.Remove(&q.items, wanted.index)
	return true
}
