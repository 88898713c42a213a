package memory_test

import (
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/storetest"
)

func BenchmarkAppend(b *testing.B) {
	s := memory.New()
	ctx := b.Context()
	if err := s.Create(ctx, store.NewRun{ID: "r"}); err != nil {
		b.Fatal(err)
	}
	l, err := s.Acquire(ctx, "r", "me", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	one := make([]store.Append, 1)
	events := []engine.Event{&engine.NodeCompleted{Path: "a"}, &engine.NodeStarted{Path: "b"}}
	b.ReportAllocs()
	var seq int64
	for b.Loop() {
		one[0] = store.Append{Commit: engine.Commit{Run: "r", Seq: seq + 1, First: 2*seq + 1, At: seq, Events: events}, Fence: l.Fence}
		seq++
		if errs := s.Append(ctx, one); errs[0] != nil {
			b.Fatal(errs[0])
		}
	}
}

func TestMemoryStore(t *testing.T) {
	storetest.Run(t, storetest.Subject{Open: func(_ testing.TB, clock func() time.Time) store.Store { return memory.NewWithClock(clock) }})
}
