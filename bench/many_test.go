package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// heldModel answers when it is released.
type heldModel struct {
	answerModel
	waiting atomic.Int64
	release chan struct{}
}

func (h *heldModel) Generate(ctx context.Context, r *llm.Request, chunk func(llm.Chunk)) (*llm.Response, error) {
	h.waiting.Add(1)
	select {
	case <-h.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return h.answerModel.Generate(ctx, r, chunk)
}

func openMany(b *testing.B, o weir.Options) (*weir.Weir, string) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "weir.db")
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	o.Store = s
	return open(b, o), path
}

func parse(b *testing.B, w *weir.Weir, text string) *weir.Flow {
	b.Helper()
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// memoryInUse returns what the heap and the stacks take, once collections have halved the stacks of which a quarter or less is
// used.
func memoryInUse() float64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkManyWaiting has runs wait for a model in this process: what each takes in memory,
// and the processor time of one that is started and completed.
func BenchmarkManyWaiting(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				waitAndComplete(b, n)
			}
		})
	}
}

// waitAndComplete starts runs that wait for a model, and then lets them complete.
func waitAndComplete(b *testing.B, n int) {
	b.Helper()
	m := &heldModel{release: make(chan struct{})}
	w, _ := openMany(b, weir.Options{Providers: map[string]weir.Provider{"p": m}})
	f := parse(b, w, "weir: 1\nname: asks\ncontext: {model: p/m}\nnodes: {a: {type: llmRequest, in: {message: hello}}}\n")
	if err := runShortOnce(b.Context(), w, f, m); err != nil {
		b.Fatal(err)
	}
	before, cpu := memoryInUse(), cpuTime()
	all := startMany(b, w, f, n)
	for m.waiting.Load() < int64(n)+1 {
		runtime.Gosched()
	}
	b.ReportMetric((memoryInUse()-before)/float64(n), "B/run")
	close(m.release)
	for _, run := range all {
		if r, err := run.Wait(b.Context()); err != nil || r.Status != engine.Completed {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(n), "cpu-us/run")
}

// runShortOnce has a first run load what all share.
func runShortOnce(ctx context.Context, w *weir.Weir, f *weir.Flow, m *heldModel) error {
	held := m.release
	m.release = make(chan struct{})
	close(m.release)
	err := runShort(ctx, w, f)
	m.release = held
	return err
}

func startMany(b *testing.B, w *weir.Weir, f *weir.Flow, n int) (all []*weir.Run) {
	b.Helper()
	for range n {
		run, err := w.Start(b.Context(), f, weir.Start{})
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, run)
	}
	return all
}

// BenchmarkManyPaused fills a database with runs that wait for a person, closes it, and reports
// what it takes, with that many runs, to open it, to list 100 runs, and to answer one.
func BenchmarkManyPaused(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				pausedOnce(b, n)
			}
		})
	}
}

func pausedOnce(b *testing.B, n int) {
	b.Helper()
	ctx := b.Context()
	w, path := openMany(b, weir.Options{})
	f := parse(b, w, "weir: 1\nname: asks\nnodes: {a: {type: userInput, with: {prompt: Which?}}}\n")
	runParallelPaused(b, w, f, n)
	if err := w.Close(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(sizeOf(b, path))/float64(n), "B/run")
	before := memoryInUse()
	var again *weir.Weir
	report := func(name string, do func() error) {
		start := cpuTime()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64((cpuTime() - start).Microseconds()), name+"-us")
	}
	report("open", func() error {
		s, err := sqlite.Open(ctx, path, sqlite.Options{})
		if err == nil {
			again = open(b, weir.Options{Store: s})
			parse(b, again, "weir: 1\nname: asks\nnodes: {a: {type: userInput, with: {prompt: Which?}}}\n")
		}
		return err
	})
	var rows []store.Run
	report("list", func() (err error) {
		rows, err = again.Runs(ctx, store.Filter{Status: []engine.Status{engine.Paused}})
		return err
	})
	report("answer", func() error {
		run, err := again.Resume(ctx, rows[50].ID)
		if err == nil {
			err = run.Answer(ctx, rows[50].Head.Waiting[0].ID, "this one")
		}
		if err == nil {
			_, err = run.Wait(ctx)
		}
		return err
	})
	b.ReportMetric((memoryInUse()-before)/float64(n), "memory-B/run")
}

// runParallelPaused starts n runs, 100 at once, and waits until they are paused.
func runParallelPaused(b *testing.B, w *weir.Weir, f *weir.Flow, n int) {
	b.Helper()
	const atOnce = 100
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for range n / atOnce {
				run, err := w.Start(b.Context(), f, weir.Start{})
				if err == nil {
					_, err = run.Wait(b.Context())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
