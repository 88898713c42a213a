package queue_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/node/queue"
)

// queueModel is a queue besides a list that it has to be as.
type queueModel struct {
	queue         *queue.Queue[int]
	capacity      int
	list          []int
	next, refused int
}

func (m *queueModel) add(t *rapid.T) {
	var more []int
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		m.next++
		more = append(more, m.next)
	}
	err := m.queue.Add(more...)
	if full := len(m.list)+len(more) > m.capacity; full != errors.Is(err, queue.ErrFull) || full != (err != nil) {
		t.Fatalf("%d more to %d of %d: %v", len(more), len(m.list), m.capacity, err)
	}
	if err != nil {
		m.refused += len(more)
		return
	}
	m.list = append(m.list, more...)
}

func (m *queueModel) removeNext(t *rapid.T) {
	got, ok := m.queue.Next()
	if ok != (len(m.list) > 0) || ok && got != m.list[0] {
		t.Fatalf("next is %d, %v of %v", got, ok, m.list)
	}
	if ok {
		m.list = m.list[1:]
	}
}

func (m *queueModel) check(t *rapid.T) {
	q := m.queue
	if q.Len() != len(m.list) || !slices.Equal(q.Entries(), m.list) || q.Refused() != m.refused || q.Capacity() != m.capacity {
		t.Fatalf("it holds %v, expected %v; it refused %d, expected %d", q.Entries(), m.list, q.Refused(), m.refused)
	}
}

func TestQueueIsFirstInFirstOutAndBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 5).Draw(t, "capacity")
		m := &queueModel{queue: queue.New[int](capacity), capacity: capacity}
		t.Repeat(map[string]func(*rapid.T){"add": m.add, "next": m.removeNext, "": m.check})
	})
}

func TestDefaultCapacityIsAHundred(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int{0, -1} {
		q := queue.New[string](capacity)
		for range 100 {
			if err := q.Add("entry"); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Add("one more"); !errors.Is(err, queue.ErrFull) || !strings.Contains(err.Error(), "its capacity is 100 entries, 100 are waiting") {
			t.Errorf("the entry after the last: %v", err)
		}
	}
}

func TestConcurrentAddAndNextHandleEachEntryOnce(t *testing.T) {
	t.Parallel()
	const workers, each = 64, 100
	q := queue.New[int](workers * each)
	var all sync.WaitGroup
	var taken [workers*each + 1]atomic.Int32
	take := func(most int) {
		for range most {
			if n, ok := q.Next(); ok {
				taken[n].Add(1)
			}
		}
	}
	for w := range workers {
		all.Go(func() {
			for i := range each {
				if err := q.Add(w*each + i); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() { take(each / 2) })
	}
	all.Wait()
	take(q.Len())
	for n := range workers * each {
		if times := taken[n].Load(); times != 1 {
			t.Errorf("%d was taken %d times", n, times)
		}
	}
}
