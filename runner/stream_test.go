package runner_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/tool"
)

// streamingModel is a model that answers in pieces of random sizes, fails now and then in the
// middle of one, and calls a tool if the question says so.
type streamingModel struct {
	mu    sync.Mutex
	tries map[string]int
	seed  uint64
}

func (b *streamingModel) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	b.mu.Lock()
	b.tries[req.Key]++
	try := b.tries[req.Key]
	b.mu.Unlock()
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %d", req.Key, try, b.seed)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	last := req.Messages[len(req.Messages)-1]
	m := convo.Message{Role: convo.Assistant, Text: strings.Repeat("answer to "+last.Text+". ", 1+r.IntN(20))}
	fails := try < 3 && r.IntN(3) == 0
	for text := m.Text; text != ""; {
		n := min(1+r.IntN(7), len(text))
		emit(llm.Chunk{Text: text[:n]})
		if text = text[n:]; fails && r.IntN(20) == 0 {
			return nil, &llm.Error{Code: engine.CodeModelUnavailable, Message: "it broke", Retry: true, Retried: true}
		}
		for range r.IntN(20) {
			runtime.Gosched()
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
	}
	if last.Role == convo.User && strings.Contains(last.Text, "look") {
		m.Calls = []convo.Call{{ID: "c", Name: "look", Arguments: "{}"}}
		if strings.Contains(last.Text, "helper") {
			m.Calls = []convo.Call{{ID: "c", Name: "helper", Arguments: "{}"}, {ID: "d", Name: "helper", Arguments: "{}"}}
		}
		emit(llm.Chunk{Call: &m.Calls[0]})
	}
	return &llm.Response{Message: m, Usage: llm.Usage{Input: 1, Output: 1}}, nil
}

const streamedChild = `
weir: 1
name: low
context: {model: p/m}
inputs: {name: {type: text, required: true}}
nodes:
  a: {type: llmRequest, retry: {attempts: 6, backoff: 1ms}, in: {message: "I am {{ run.inputs.name }}"}}
  b: {type: llmRequest, after: a, retry: {attempts: 6, backoff: 1ms}, in: {message: look, tools: [look]}}
outputs: {said: "{{ b.text }}"}
`

const streamedMiddle = `
weir: 1
name: middle
context: {model: p/m}
nodes:
  low: {type: flow, in: {name: Bo}, with: {flow: low}}
  ask: {type: userInput, after: low, with: {prompt: "Well?"}}
  then: {type: llmRequest, after: ask, retry: {attempts: 6, backoff: 1ms}, in: {message: "{{ ask.text }}"}}
outputs: {said: "{{ then.text }}"}
`

const streamedTool = `
weir: 1
name: helper
context: {model: p/m}
nodes:
  own: {type: llmRequest, retry: {attempts: 6, backoff: 1ms}, in: {message: look, tools: [look]}}
  low: {type: flow, after: own, in: {name: Ed}, with: {flow: low}}
outputs: {said: "{{ low.said }}"}
`

const streamedRoot = `
weir: 1
name: top
context: {model: p/m}
nodes:
  first: {type: llmRequest, retry: {attempts: 6, backoff: 1ms}, in: {message: look around, tools: [look]}}
  each:
    type: forEach
    in: {items: [Al, Cy, Di]}
    with:
      concurrency: 3
      body:
        nodes: {one: {type: flow, in: {name: "{{ inputs.item }}"}, with: {flow: low}}}
        outputs: {said: "{{ one.said }}"}
  mid: {type: flow, after: first, with: {flow: middle}}
  asks: {type: llmRequest, retry: {attempts: 6, backoff: 1ms}, in: {message: look with the helper, tools: [helper]}}
  calls: {type: tool, after: first, with: {tool: helper}}
  end: {type: llmRequest, after: [mid, each, asks, calls], retry: {attempts: 6, backoff: 1ms}, in: {message: end}}
outputs: {text: "{{ end.text }}"}
`

// streamState is what a reader has that applies items in order.
type streamState struct {
	t        *testing.T
	who      string
	last     map[string]int64  // number of the last event by run
	open     map[string]string // live text by run and effect
	final    map[string]string // texts of completed effects
	children map[string]int    // 1 where a child was started, 2 once it has reported its end
	calls    map[string]string // runs of tool calls by the call's run and effect
	remote   bool              // it may not have got the end of a text
}

func newStreamState(t *testing.T, who string) *streamState {
	t.Helper()
	return &streamState{t, who, map[string]int64{}, map[string]string{}, map[string]string{}, map[string]int{}, map[string]string{}, false}
}

func (s *streamState) clone(who string) *streamState {
	return &streamState{s.t, who, maps.Clone(s.last), maps.Clone(s.open), maps.Clone(s.final), maps.Clone(s.children), maps.Clone(s.calls), s.remote}
}

func (s *streamState) apply(it *weir.Item) {
	key := it.Run + " " + it.Effect
	switch {
	case it.Event != nil:
		s.event(it)
	case it.Gap:
		clear(s.open)
	case it.Retracted:
		delete(s.open, key)
	case it.Snapshot:
		s.open[key] = it.Chunk.Text
	case it.Chunk != nil && it.Chunk.Text != "":
		s.open[key] += it.Chunk.Text
	}
	if it.Event == nil && !it.Gap && s.last[it.Run] == 0 {
		s.t.Errorf("%s: live output of run %s before its first event", s.who, it.Run)
	}
}

func (s *streamState) event(it *weir.Item) {
	if it.Number != s.last[it.Run]+1 {
		s.t.Errorf("%s: event %d of run %s comes after %d", s.who, it.Number, it.Run, s.last[it.Run])
	}
	s.last[it.Run] = it.Number
	if it.PathPrefix != "" && s.children[it.Run] != 1 {
		s.t.Errorf("%s: %s of child %s: its state is %d", s.who, it.Event.Kind(), it.Run, s.children[it.Run])
	}
	switch e := it.Event.(type) {
	case *engine.NodeWaiting:
		for _, i := range e.Interrupts {
			if i.Child != nil {
				s.children[i.Child.Run] = 1
			}
		}
	case *engine.NoteRecorded:
		if o, ok := e.Value.(map[string]any); ok && strings.Contains(e.Key, "/run:") {
			run, _ := o["run"].(string)
			s.children[run] = 1
			s.calls[it.Run+" "+o["effect"].(string)] = run
		}
	case *engine.ChildReported:
		if e.Status.Ended() {
			s.children[e.Run] = 2
		}
	case *engine.EffectCompleted:
		if run := s.calls[it.Run+" "+e.Key]; run != "" {
			s.children[run] = 2
		}
		s.completed(it.Run+" "+e.Key, e)
	}
}

func (s *streamState) completed(key string, e *engine.EffectCompleted) {
	live, has := s.open[key]
	delete(s.open, key)
	if e.Error != nil {
		if has {
			s.t.Errorf("%s: %s failed and its text was not retracted: %q", s.who, key, live)
		}
		return
	}
	o, _ := e.Result.(map[string]any)
	m, ok := o["message"].(map[string]any)
	if !ok {
		return
	}
	text, _ := m["text"].(string)
	if has && live != text && (!s.remote || !strings.HasPrefix(text, live)) {
		s.t.Errorf("%s: of %s the reader has %q, the journal %q", s.who, key, live, text)
	}
	s.final[key] = text
}

// done checks what a reader has at the end of the run against the journals.
func (s *streamState) done(st weir.Store) {
	s.t.Helper()
	if len(s.open) > 0 {
		s.t.Errorf("%s: live text is left over: %q", s.who, s.open)
	}
	want := newStreamState(s.t, s.who)
	runs, err := st.Runs(s.t.Context(), store.Filter{Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range runs {
		id := runs[i].ID
		for c, err := range st.Commits(s.t.Context(), id, 0) {
			if err != nil {
				s.t.Fatal(err)
			}
			for i, e := range c.Events {
				want.last[id] = c.First + int64(i)
				if e, ok := e.(*engine.EffectCompleted); ok {
					want.completed(id+" "+e.Key, e)
				}
			}
		}
	}
	if !maps.Equal(want.last, s.last) || !maps.Equal(want.final, s.final) {
		s.t.Errorf("%s: it has events up to %v and %d texts, the journals %v and %d", s.who, s.last, len(s.final), want.last, len(want.final))
	}
}

// cursors are cursors with what their readers had.
type cursors struct {
	mu   sync.Mutex
	list []cursorAt
}

type cursorAt struct {
	cursor string
	seen   *streamState
}

func (k *cursors) add(cursor string, s *streamState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, cursorAt{cursor, s})
}

// any returns a cursor of any reader, or the beginning.
func (k *cursors) any(t *testing.T, r *rand.Rand, who string) (string, *streamState) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := r.IntN(len(k.list) + 1); n > 0 {
		return k.list[n-1].cursor, k.list[n-1].seen.clone(who)
	}
	return "", newStreamState(t, who)
}

// read has a reader read a run that a process executes, or follow it from another,
// coming back at cursors of its own and of others.
func (k *cursors) read(t *testing.T, who string, seed uint64, w *weir.Weir, st weir.Store, remote bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	for range r.IntN(2000) {
		runtime.Gosched()
	}
	for again := r.IntN(4); again >= 0; again-- {
		cursor, s := k.any(t, r, who)
		s.remote = remote
		stop, whole := r.IntN(400), true
		for it, err := range w.Follow(t.Context(), "top", cursor) {
			if err != nil {
				t.Errorf("%s: %v", who, err)
				return
			}
			s.apply(&it)
			if r.IntN(50) == 0 {
				k.add(it.Cursor(), s.clone(who))
			}
			for range r.IntN(10) {
				runtime.Gosched()
			}
			if stop--; stop == 0 && again > 0 {
				whole = false
				break
			}
		}
		if whole {
			s.done(st)
		}
	}
}

func openStreaming(t *testing.T, path string, seed uint64) (*weir.Weir, *weir.Flow, weir.Store) {
	t.Helper()
	st := weirkit.OpenSQLite(t, path)
	look, err := tool.FromFunc("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	if err != nil {
		t.Fatal(err)
	}
	look.ReadOnly = true
	parser := weirkit.Open(t, weir.Options{Tools: []*weir.Tool{look}})
	helper, err := parser.Parse("helper", []byte(streamedTool), weirkit.Parse(t, parser, streamedChild))
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{
		Store: st, Providers: map[string]weir.Provider{"p": &streamingModel{tries: map[string]int{}, seed: seed}}, Tools: []*weir.Tool{look},
		Flows: []weir.FlowTool{{Flow: helper, Description: "Helps."}},
		// The model fails so often that it would not be called for a minute.
		Breakers: map[string]llm.Breaker{"p": {Failures: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	low := weirkit.Parse(t, w, streamedChild)
	middle, err := w.Parse("middle", []byte(streamedMiddle), low)
	if err != nil {
		t.Fatal(err)
	}
	top, err := w.Parse("top", []byte(streamedRoot), low, middle)
	if err != nil {
		t.Fatal(err)
	}
	return w, top, st
}

// TestEveryStreamReaderMatchesTheJournals has readers come at random moments
// to a run with children, slow ones and several at once, in the process that executes
// the run and in another, and come back at cursors of theirs and of others, also once
// the first process has closed and another one continues the run. Each has all events
// in order, the text of each effect without holes or doubles, and none that is void.
func TestEveryStreamReaderMatchesTheJournals(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { checkStreaming(t, seed) })
	}
}

func checkStreaming(t *testing.T, seed uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	first, f, st := openStreaming(t, path, seed)
	second, _, st2 := openStreaming(t, path, seed)
	defer second.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // it has nothing left to do
	r := rand.New(rand.NewPCG(seed, 3))
	moves := seed%3 > 0 // to the second process, in the middle of the run or where it waits
	stop := 0
	if seed%3 == 1 {
		stop = 1 + r.IntN(600)
	}
	var k cursors
	var wg sync.WaitGroup
	join := func(n int) {
		who, from, of, seed, remote := fmt.Sprintf("reader %d", n), second, st2, r.Uint64(), true
		if !moves && n%2 == 0 {
			from, of, remote = first, st, false
		}
		wg.Go(func() { k.read(t, who, seed, from, of, remote) })
	}
	run, err := first.Start(t.Context(), f, weir.Start{ID: "top"})
	if err != nil {
		t.Fatal(err)
	}
	join(0)
	join(1)
	own := newStreamState(t, "the first reader")
	cursor := k.first(t, own, run, r, stop, join)
	w, of := first, st
	if moves {
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, of = second, st2
		if run, err = w.Resume(t.Context(), "top"); err != nil {
			t.Fatal(err)
		}
	}
	cursor = k.readOn(t, own, run, cursor)
	if run, err = w.Answer(t.Context(), "top", weirkit.Wait(t, run).Interrupts[0].ID, "Well.", ""); err != nil {
		t.Fatal(err)
	}
	k.readOn(t, own, run, cursor)
	if res := weirkit.Wait(t, run); res.Status != engine.Completed {
		t.Errorf("the run is %s: %v", res.Status, res.Error)
	}
	own.done(of)
	wg.Wait()
	if !moves {
		_ = first.Close(t.Context())
	}
}

// first reads the first execution of a run, up to some item, has others join and keeps
// places for them.
func (k *cursors) first(t *testing.T, own *streamState, run *weir.Run, r *rand.Rand, stop int, join func(n int)) (cursor string) {
	t.Helper()
	n := 0
	for it, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		own.apply(&it)
		cursor = it.Cursor()
		if r.IntN(20) == 0 {
			k.add(cursor, own.clone(""))
		}
		if n++; n%200 == 0 && n < 800 {
			join(n)
		}
		if n == stop {
			break
		}
	}
	return cursor
}

// readOn reads an execution from a cursor to its end.
func (k *cursors) readOn(t *testing.T, s *streamState, run *weir.Run, cursor string) string {
	t.Helper()
	for it, err := range run.EventsFrom(t.Context(), cursor) {
		if err != nil {
			t.Fatal(err)
		}
		s.apply(&it)
		cursor = it.Cursor()
	}
	return cursor
}

// haltedModel streams the first half of its answer, waits, and streams the rest.
type haltedModel struct {
	halfway, release chan struct{}
}

func (m *haltedModel) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	emit(llm.Chunk{Text: "one "})
	close(m.halfway)
	select {
	case <-m.release:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	emit(llm.Chunk{Text: "two"})
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "one two"}}, nil
}

// TestCursorFromBeforeASnapshotGetsTheSnapshot has readers stop at each item that they get
// before the snapshot of a text that is being streamed, and resume there.
func TestCursorFromBeforeASnapshotGetsTheSnapshot(t *testing.T) {
	t.Parallel()
	m := &haltedModel{make(chan struct{}), make(chan struct{})}
	st := weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "weir.db"))
	w, err := weir.Open(weir.Options{Store: st, Providers: map[string]weir.Provider{"p": m}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the run has ended
	f := weirkit.Parse(t, w, "weir: 1\nname: top\ncontext: {model: p/m}\nnodes:\n  a: {type: llmRequest, in: {message: Go.}}\n")
	run, err := w.Start(t.Context(), f, weir.Start{ID: "top"})
	if err != nil {
		t.Fatal(err)
	}
	<-m.halfway
	var k cursors
	s := newStreamState(t, "a reader that joins")
	for it, err := range w.Follow(t.Context(), "top", "") {
		if err != nil {
			t.Fatal(err)
		}
		if s.apply(&it); it.Snapshot {
			break
		}
		k.add(it.Cursor(), s.clone(fmt.Sprintf("a reader that resumes after %d items", len(k.list)+1)))
	}
	if len(k.list) == 0 {
		t.Fatal("nothing came before the snapshot")
	}
	var wg sync.WaitGroup
	joined := make(chan struct{})
	for _, at := range k.list {
		wg.Go(func() { resumeAt(t, w, st, at, joined) })
	}
	for range k.list {
		<-joined
	}
	close(m.release)
	wg.Wait()
	weirkit.Wait(t, run)
}

// resumeAt reads a run from a cursor to its end, and says once it has live output.
func resumeAt(t *testing.T, w *weir.Weir, st weir.Store, at cursorAt, joined chan<- struct{}) {
	t.Helper()
	said := false
	for it, err := range w.Follow(t.Context(), "top", at.cursor) {
		if err != nil {
			t.Error(err)
			return
		}
		if at.seen.apply(&it); it.Event == nil && !said {
			said = true
			joined <- struct{}{}
		}
	}
	at.seen.done(st)
}

// TestCursorOfAnotherProcessGetsTheWholeText has a reader stop in the middle of a text, continue in a process that reads the
// journals alone, and come back with the cursor of that process.
func TestCursorOfAnotherProcessGetsTheWholeText(t *testing.T) {
	t.Parallel()
	m := &haltedModel{make(chan struct{}), make(chan struct{})}
	path := filepath.Join(t.TempDir(), "weir.db")
	st := weirkit.OpenSQLite(t, path)
	w := weirkit.Open(t, weir.Options{Store: st, Providers: map[string]weir.Provider{"p": m}})
	other := weirkit.Open(t, weir.Options{Store: weirkit.OpenSQLite(t, path)})
	f := weirkit.Parse(t, w, "weir: 1\nname: top\ncontext: {model: p/m}\nnodes:\n  a: {type: llmRequest, in: {message: Go.}}\n")
	run, err := w.Start(t.Context(), f, weir.Start{ID: "top"})
	if err != nil {
		t.Fatal(err)
	}
	s := newStreamState(t, "a reader that comes back")
	cursor := ""
	read := func(items iter.Seq2[weir.Item, error], last func(*weir.Item) bool) {
		t.Helper()
		for it, err := range items {
			if err != nil {
				t.Fatal(err)
			}
			s.apply(&it)
			cursor = it.Cursor()
			if last(&it) {
				return
			}
		}
		t.Fatal("the run has ended")
	}
	read(run.Events(t.Context()), func(it *weir.Item) bool { return it.Chunk != nil })
	read(other.Follow(t.Context(), "top", cursor), func(it *weir.Item) bool { return it.Gap })
	joined := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { resumeAt(t, w, st, cursorAt{cursor, s}, joined) })
	<-joined
	close(m.release)
	wg.Wait()
	weirkit.Wait(t, run)
}
