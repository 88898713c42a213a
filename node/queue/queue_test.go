package queue_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/node/queue"
)

func TestWhatComesInFirstComesOutFirstAndAFullQueueRefuses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 5).Draw(t, "capacity")
		q := queue.New[int](capacity)
		var naive []int
		refused := 0
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				var more []int
				for range rapid.IntRange(0, 3).Draw(t, "entries") {
					next++
					more = append(more, next)
				}
				err := q.Add(more...)
				if full := len(naive)+len(more) > capacity; full != errors.Is(err, queue.ErrFull) || full != (err != nil) {
					t.Fatalf("%d more to %d of %d: %v", len(more), len(naive), capacity, err)
				}
				if err != nil {
					refused += len(more)
					return
				}
				naive = append(naive, more...)
			},
			"next": func(t *rapid.T) {
				got, ok := q.Next()
				if ok != (len(naive) > 0) || ok && got != naive[0] {
					t.Fatalf("next is %d, %v of %v", got, ok, naive)
				}
				if ok {
					naive = naive[1:]
				}
			},
			"": func(t *rapid.T) {
				if q.Len() != len(naive) || !slices.Equal(q.Entries(), naive) || q.Refused() != refused || q.Capacity() != capacity {
					t.Fatalf("it holds %v, expected %v; it refused %d, expected %d", q.Entries(), naive, q.Refused(), refused)
				}
			},
		})
	})
}

func TestAQueueThatIsNotToldOtherwiseTakesAHundred(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int{0, -1} {
		q := queue.New[string](capacity)
		for range 100 {
			if err := q.Add("entry"); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Add("one more"); !errors.Is(err, queue.ErrFull) || !strings.Contains(err.Error(), "it takes 100 entries, and 100 wait in it") {
			t.Errorf("the entry after the last: %v", err)
		}
	}
}

func TestManyGoroutinesAddAndTakeEachEntryOnce(t *testing.T) {
	t.Parallel()
	q := queue.New[int](10_000)
	var all sync.WaitGroup
	taken := make([]bool, 64*100)
	var mu sync.Mutex
	for w := range 64 {
		all.Go(func() {
			for i := range 100 {
				if err := q.Add(w*100 + i); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range 50 {
				if n, ok := q.Next(); ok {
					mu.Lock()
					if taken[n] {
						t.Errorf("%d was taken twice", n)
					}
					taken[n] = true
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for n, ok := q.Next(); ok; n, ok = q.Next() {
		if taken[n] {
			t.Errorf("%d was taken twice", n)
		}
		taken[n] = true
	}
	if slices.Contains(taken, false) {
		t.Error("an entry was lost")
	}
}
