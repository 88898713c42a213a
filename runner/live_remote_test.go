package runner_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// steppedModel streams each step as text. The step "fail" ends the call with an error, "done" with the text.
type steppedModel struct {
	steps chan string
}

func (m *steppedModel) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	said := ""
	for {
		select {
		case step := <-m.steps:
			switch step {
			case "fail":
				return nil, &llm.Error{Code: engine.CodeModelUnavailable, Message: "it broke", Retry: true, Retried: true}
			case "done":
				return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: said}}, nil
			}
			said += step
			emit(llm.Chunk{Text: step})
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

const steppedFlow = `
weir: 1
name: top
context: {model: p/m}
nodes:
  a: {type: llmRequest, retry: {attempts: 6, backoff: 1ms}, in: {message: Go.}}
outputs: {said: "{{ a.text }}"}
`

// remotePair is a process that executes a run and one that follows it.
type remotePair struct {
	t                    *testing.T
	model                *steppedModel
	run                  *weir.Run
	executing, following *weir.Weir
	from                 weir.Store // of the process that follows
}

// startRemote starts a run in one process; open opens the store of each of two.
func startRemote(t *testing.T, open func(process int) weir.Store) *remotePair {
	t.Helper()
	p := &remotePair{t: t, model: &steppedModel{make(chan string)}}
	p.executing = weirkit.Open(t, weir.Options{
		Store: open(0), Providers: map[string]weir.Provider{"p": p.model}, Breakers: map[string]llm.Breaker{"p": {Failures: -1}},
	})
	p.from = open(1)
	p.following = weirkit.Open(t, weir.Options{Store: p.from})
	var err error
	if p.run, err = p.executing.Start(t.Context(), weirkit.Parse(t, p.executing, steppedFlow), weir.Start{ID: "top"}); err != nil {
		t.Fatal(err)
	}
	return p
}

// onSQLite opens one file for each process.
func onSQLite(t *testing.T) func(int) weir.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	return func(int) weir.Store { return weirkit.OpenSQLite(t, path) }
}

// step has the model make a step.
func (p *remotePair) step(step string) {
	p.t.Helper()
	select {
	case p.model.steps <- step:
	case <-time.After(time.Minute):
		p.t.Fatalf("the model does not take %q", step)
	}
}

// remoteReader is a reader of the process that follows. It reads only while a test waits for something.
type remoteReader struct {
	t      *testing.T
	next   func() (weir.Item, error, bool)
	seen   *streamState
	cursor string
	gaps   int
}

func (p *remotePair) reader(cursor string, seen *streamState) *remoteReader {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	next, stop := iter.Pull2(p.following.Follow(ctx, "top", cursor))
	p.t.Cleanup(func() {
		stop()
		cancel()
	})
	return &remoteReader{t: p.t, next: next, seen: seen}
}

// until reads until the reader has the text.
func (r *remoteReader) until(text string) {
	r.t.Helper()
	for r.seen.open["top a/model#1"] != text {
		if !r.read() {
			r.t.Fatalf("the run has ended, and %s has not got %q", r.seen.who, text)
		}
	}
}

func (r *remoteReader) read() bool {
	r.t.Helper()
	it, err, more := r.next()
	if err != nil {
		r.t.Fatalf("%s: %v, with the text %q", r.seen.who, err, r.seen.open)
	}
	if !more {
		return false
	}
	r.seen.apply(&it)
	r.cursor = it.Cursor()
	if it.Gap {
		r.gaps++
	}
	return true
}

// awaitParts waits until the store has more parts than those up to a number, or with none that it has no parts, and returns the last.
func (p *remotePair) awaitParts(above int64, none bool) (last store.LiveTextPart) {
	p.t.Helper()
	s := p.from.Capabilities().LiveText
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		parts, err := s.LiveText(p.t.Context(), map[string]int64{"top": above})
		if err != nil {
			p.t.Fatal(err)
		}
		if none == (len(parts) == 0) {
			return append(parts, store.LiveTextPart{})[max(len(parts)-1, 0)]
		}
	}
	p.t.Fatal("the live text in the store does not change")
	return last
}

// TestLiveTextReachesReadersInOtherProcesses has readers of another process follow a call that fails once, from its beginning, in its
// middle and from a cursor.
func TestLiveTextReachesReadersInOtherProcesses(t *testing.T) {
	t.Parallel()
	checkRemoteText(t, onSQLite(t))
}

func checkRemoteText(t *testing.T, open func(int) weir.Store) {
	t.Helper()
	p := startRemote(t, open)
	first := p.reader("", newStreamState(t, "the first reader"))
	p.step("one ")
	first.until("one ")
	p.step("two")
	first.until("one two")
	late := p.reader("", newStreamState(t, "a late reader"))
	late.until("one two")
	p.step("fail")
	first.until("")
	late.until("")
	p.step("three")
	first.until("three")
	late.until("three")
	if first.gaps+late.gaps > 0 {
		t.Errorf("%d and %d gaps, want none", first.gaps, late.gaps)
	}
	back := p.reader(first.cursor, first.seen.clone("a reader that comes back"))
	for back.gaps == 0 {
		back.read()
	}
	back.until("three")
	p.step(" four")
	readers := []*remoteReader{first, late, back}
	for _, r := range readers {
		r.until("three four")
	}
	p.step("done")
	for _, r := range readers {
		for r.read() {
		}
		r.seen.done(p.from)
	}
	r := weirkit.Wait(t, p.run)
	if said, _ := r.Outputs.Get("said"); said != "three four" {
		t.Errorf("the run is %s with %v", r.Status, r.Outputs)
	}
	p.awaitParts(0, true)
}

// TestLostLiveTextIsAGap removes parts that a reader has not read.
func TestLostLiveTextIsAGap(t *testing.T) {
	t.Parallel()
	p := startRemote(t, onSQLite(t))
	r := p.reader("", newStreamState(t, "the reader"))
	p.step("one ")
	r.until("one ")
	part := p.awaitParts(0, false)
	p.step("two ")
	part = p.awaitParts(part.Number, false)
	if err := p.from.Capabilities().LiveText.RemoveLiveText(t.Context(), map[string]string{"top": part.Writer}); err != nil {
		t.Fatal(err)
	}
	p.step("three")
	p.awaitParts(part.Number, false)
	r.until("one two three")
	if r.gaps != 1 {
		t.Errorf("%d gaps, want one", r.gaps)
	}
	p.step("done")
	for r.read() {
	}
	r.seen.done(p.from)
	weirkit.Wait(t, p.run)
}

// countedLiveText counts the calls for live text and the reads of inboxes.
type countedLiveText struct {
	*sqlite.Store
	calls, inboxes atomic.Int64
	absent         bool // the store does not have the capability
}

// Capabilities implements store.Store.
func (c *countedLiveText) Capabilities() store.Capabilities {
	all := c.Store.Capabilities()
	if all.LiveText = c; c.absent {
		all.LiveText = nil
	}
	return all
}

func (c *countedLiveText) PostsForOwner(ctx context.Context, owner string) ([]store.Post, error) {
	c.inboxes.Add(1)
	return c.Store.PostsForOwner(ctx, owner)
}

func (c *countedLiveText) RequestLiveText(ctx context.Context, runs []string, fresh bool, ttl time.Duration) error {
	c.calls.Add(1)
	return c.Store.RequestLiveText(ctx, runs, fresh, ttl)
}

func (c *countedLiveText) PutLiveText(ctx context.Context, parts []store.LiveTextPart) error {
	c.calls.Add(1)
	return c.Store.PutLiveText(ctx, parts)
}

func (c *countedLiveText) RemoveLiveText(ctx context.Context, writers map[string]string) error {
	c.calls.Add(1)
	return c.Store.RemoveLiveText(ctx, writers)
}

func (c *countedLiveText) LiveText(ctx context.Context, after map[string]int64) ([]store.LiveTextPart, error) {
	c.calls.Add(1)
	return c.Store.LiveText(ctx, after)
}

// counted opens counted stores; those of processes from absent on lack the capability.
func counted(t *testing.T, absent int) (open func(int) weir.Store, stores []*countedLiveText) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	for process := range 2 {
		stores = append(stores, &countedLiveText{Store: weirkit.OpenSQLite(t, path), absent: process >= absent})
	}
	return func(process int) weir.Store { return stores[process] }, stores
}

// await waits until the counter has grown by n.
func await(t *testing.T, counter *atomic.Int64, n int64) {
	t.Helper()
	for end, want := time.Now().Add(time.Minute), counter.Load()+n; counter.Load() < want; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the store is not read")
		}
	}
}

// TestLiveTextCostsNothingWhileNobodyReads counts calls of the store before and after another process reads.
func TestLiveTextCostsNothingWhileNobodyReads(t *testing.T) {
	t.Parallel()
	open, stores := counted(t, 2)
	p := startRemote(t, open)
	p.step("one ")
	await(t, &stores[0].inboxes, 3)
	p.step("two ")
	await(t, &stores[0].inboxes, 3)
	if n := stores[0].calls.Load() + stores[1].calls.Load(); n != 0 {
		t.Errorf("%d calls for live text while nobody reads", n)
	}
	r := p.reader("", newStreamState(t, "the reader"))
	r.until("one two ")
	if stores[0].calls.Load() == 0 {
		t.Error("the calls are not counted")
	}
	p.step("done")
	weirkit.Wait(t, p.run)
}

// TestWithoutTheCapabilityOtherProcessesHaveEventsOnly follows a run where one process or the other lacks live text.
func TestWithoutTheCapabilityOtherProcessesHaveEventsOnly(t *testing.T) {
	t.Parallel()
	open, stores := counted(t, 1)
	p := startRemote(t, open)
	r := p.reader("", newStreamState(t, "the reader"))
	for len(r.seen.last) == 0 || r.seen.last["top"] < 2 {
		r.read()
	}
	p.step("one ")
	await(t, &stores[0].inboxes, 3)
	p.step("done")
	for r.read() {
		if len(r.seen.open) > 0 {
			t.Errorf("the reader has %q", r.seen.open)
		}
	}
	r.seen.done(p.from)
	if n := stores[0].calls.Load() + stores[1].calls.Load(); n != 0 {
		t.Errorf("%d calls for live text", n)
	}
	weirkit.Wait(t, p.run)
}

// TestLiveTextIsInNoBackup backs up a database while a text is being streamed.
func TestLiveTextIsInNoBackup(t *testing.T) {
	t.Parallel()
	p := startRemote(t, onSQLite(t))
	r := p.reader("", newStreamState(t, "the reader"))
	text := strings.Repeat("canary ", 2000)
	p.step(text)
	r.until(text)
	p.awaitParts(0, false)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := p.from.(*sqlite.Store).Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	data, err := readAll(backup)
	if err != nil || strings.Contains(data, "canary canary") {
		t.Errorf("the backup has the live text (%v)", err)
	}
	p.step("done")
	weirkit.Wait(t, p.run)
}

// readAll returns the bytes of a file.
func readAll(path string) (string, error) {
	data, err := os.ReadFile(path)
	return string(data), err
}
