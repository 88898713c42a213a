package runner_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
)

// recoveryWorld is what a process offers to the flows of the recovery tests. In the first
// process everything that is asked to hold reports that it was reached and does not
// return; in a later one it returns.
type recoveryWorld struct {
	dir          string
	firstProcess bool   // whether this is the first process
	lacks        string // "node type", "tool", "provider", "other provider", "secret" or "secret of a tool"
	reached      func()
	once         sync.Once
	drain        time.Duration
	recover      bool
	deadly       bool   // the node type deadly ends the process
	slow         func() // what a model that is asked for something slow does meanwhile
}

// effect notes in a file that outlives the process that an effect took place.
func (w *recoveryWorld) effect(name string) {
	f, err := os.OpenFile(filepath.Join(w.dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	_, err = fmt.Fprintln(f, name)
	if err = errors.Join(err, f.Close()); err != nil {
		panic(err)
	}
}

// effects counts the effects of a name.
func (w *recoveryWorld) effects(name string) int {
	b, _ := os.ReadFile(filepath.Join(w.dir, "effects"))
	n := 0
	for line := range strings.Lines(string(b)) {
		if line == name+"\n" {
			n++
		}
	}
	return n
}

func (w *recoveryWorld) hold(ctx context.Context) error {
	if !w.firstProcess {
		return nil
	}
	w.once.Do(w.reached)
	<-ctx.Done()
	return context.Cause(ctx)
}

// Generate answers with the last message, calls a tool where that names one, and holds
// where it says so.
func (w *recoveryWorld) Generate(ctx context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	last := r.Messages[len(r.Messages)-1]
	w.effect("asked " + last.Text)
	m := convo.Message{Role: convo.Assistant, Text: "answer to " + last.Text}
	if name, ok := strings.CutPrefix(last.Text, "call "); ok && last.Role == convo.User {
		m = convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "c1", Name: name, Arguments: "{}"}}}
	}
	emit(llm.Chunk{Text: "partial "})
	if w.slow != nil && last.Text == "slow" {
		w.slow()
	}
	if strings.Contains(last.Text, "hold") {
		if err := w.hold(ctx); err != nil {
			return nil, err
		}
	}
	return &llm.Response{Message: m, Usage: llm.Usage{Input: 3, Output: 2}}, nil
}

func (w *recoveryWorld) tool(name string, readOnly bool) *weir.Tool {
	missing := func() []string {
		if w.lacks == "secret of a tool" {
			return []string{"LOOK"}
		}
		return nil
	}
	return &weir.Tool{Name: name, Description: "Looks.", ReadOnly: readOnly, MissingSecrets: missing, Call: func(ctx context.Context, _ tool.Call) (string, error) {
		w.effect("called " + name)
		return "seen", w.hold(ctx)
	}}
}

const calledFlow = `
weir: 1
name: called
description: Runs a flow.
context: {model: p/m}
nodes: {inner: {type: llmRequest, in: {message: inner hold}}}
outputs: {text: "{{ inner.text }}"}
`

// types returns the node types of the process.
func (w *recoveryWorld) types() []weir.Type {
	type one struct {
		Text string `json:"text"`
	}
	type none struct{}
	return []weir.Type{
		weir.Func("work", func(ctx weir.Ctx, _ none) (one, error) {
			w.effect("worked")
			return one{"worked"}, w.hold(ctx)
		}),
		weir.Func("deadly", func(ctx weir.Ctx, _ none) (one, error) {
			if w.deadly {
				panic(fatalMessage("deadly node"))
			}
			return one{"alive"}, w.hold(ctx)
		}),
		weir.Func("first", func(weir.Ctx, none) (one, error) {
			w.effect("first")
			return one{"first"}, nil
		}),
		weir.Func("choose", func(ctx weir.Ctx, _ none) (one, error) {
			m, err := ctx.Context()
			if err != nil {
				return one{}, err
			}
			return one{"chosen"}, m.SetModel("other", "m")
		}).WritesContext(),
		weir.Func("seek", func(ctx weir.Ctx, _ none) (one, error) {
			_, err := ctx.Do(node.Effect{Name: "seek", Do: func(context.Context, string) (node.Outcome, error) {
				w.effect("sought")
				return node.Outcome{Value: "nothing"}, nil
			}})
			if err == nil && w.firstProcess { // the effect before it is durable then
				_, err = ctx.Do(node.Effect{Name: "hold", ReadOnly: true, Do: func(c context.Context, _ string) (node.Outcome, error) {
					return node.Outcome{}, w.hold(c)
				}})
			}
			if err == nil { // no process has what a model may have written
				err = &engine.Error{Code: engine.CodeToolUnknown, Message: "there is no tool nothing", Permanent: true}
			}
			return one{}, err
		}),
		weir.Func("flaky", func(weir.Ctx, none) (one, error) {
			w.effect("tried")
			if w.firstProcess {
				return one{}, errors.New("not yet")
			}
			return one{"at last"}, nil
		}),
	}
}

func (w *recoveryWorld) options() (weir.Options, error) {
	o := weir.Options{
		Providers: map[string]weir.Provider{"p": w, "other": w}, Drain: w.drain, Recover: w.recover,
		Secrets: func(name string) (string, bool) { return "s3cret-value", w.lacks != "secret" },
		Tools:   []*weir.Tool{w.tool("look", true), w.tool("send", false)},
	}
	if w.lacks == "tool" {
		o.Tools = o.Tools[1:]
	}
	switch w.lacks {
	case "provider":
		delete(o.Providers, "p")
	case "other provider":
		delete(o.Providers, "other")
	}
	if w.lacks != "node type" {
		o.Types = w.types()
	}
	file := filepath.Join(w.dir, "called.yaml")
	if _, err := os.Stat(file); err != nil {
		if err := os.WriteFile(file, []byte(calledFlow), 0o600); err != nil {
			return o, err
		}
	}
	o.Flows = []weir.FlowTool{{File: file}}
	s, err := sqlite.Open(context.Background(), filepath.Join(w.dir, "weir.db"), sqlite.Options{})
	o.Store = s
	return o, err
}

// fatalMessage ends the process as nothing in it can prevent.
func fatalMessage(why string) string {
	_, _ = os.Stderr.WriteString(why + "\n")
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// open opens a Weir of the world; wrap, where set, stands before its store.
func (w *recoveryWorld) open(wrap func(weir.Store) weir.Store) (*weir.Weir, error) {
	o, err := w.options()
	if err != nil {
		return nil, err
	}
	if wrap != nil {
		o.Store = wrap(o.Store)
	}
	return weir.Open(o)
}

// recoveryCase is what a process was doing when it died.
type recoveryCase struct {
	name, flow string
	// uses is a flow that the flow runs, by the name child.
	uses string
	// until is the kind of the event at which the process has come far enough; "" is
	// that something holds.
	until string
	// messages are messages to a session of the flow, in place of a run.
	messages []string
	// fork, where set, is the flow of a fork of the run, from its node `from`; forkModel is its model.
	fork, forkModel string
	// stopped is set where the process stops before the commit that makes a round.
	stopped bool
	// want is the result, "" a run that still waits.
	want string
	// answer, where set, is what the run or session waits for after it was continued.
	answer any
	// onceEffects lists effects that may take place once in all, again those that may once in
	// each process.
	onceEffects, repeatedEffects []string
}

const recoveryNodes = `
weir: 1
name: left
context: {model: p/m}
nodes:
`

func recoveryCases() []recoveryCase {
	flow := func(nodes, out string) string { return recoveryNodes + nodes + "outputs: {text: \"" + out + "\"}\n" }
	session := `
weir: 1
name: left
context: {model: p/m}
inputs: {message: {type: text, required: true}}
nodes: {say: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}}
outputs: {text: "{{ say.text }}"}
`
	return []recoveryCase{
		{
			name: "a model call", flow: flow("  f: {type: first}\n  say: {type: llmRequest, after: f, in: {message: hold}}\n", "{{ say.text }}"),
			want: "answer to hold", onceEffects: []string{"first"}, repeatedEffects: []string{"asked hold"},
		},
		{
			name: "a model call under a budget", flow: flow("  say: {type: llmRequest, budget: {maxCalls: 5}, in: {message: hold}}\n", "{{ say.text }}"),
			want: "answer to hold", repeatedEffects: []string{"asked hold"},
		},
		{
			name: "a read-only tool", flow: flow("  say: {type: llmRequest, in: {message: call look, tools: [look]}}\n", "{{ say.text }}"),
			want: "answer to seen", onceEffects: []string{"asked call look"}, repeatedEffects: []string{"called look"},
		},
		{
			name: "a tool with effects", flow: flow("  say: {type: llmRequest, in: {message: call send, tools: [send]}}\n", "{{ say.text }}"),
			want: "answer to seen", onceEffects: []string{"asked call send"}, repeatedEffects: []string{"called send"}, answer: "retry",
		},
		{name: "a Go function", flow: flow("  w: {type: work}\n", "{{ w.text }}"), want: "worked", repeatedEffects: []string{"worked"}},
		{
			name: "a lane of a forEach", flow: flow("  each: {type: forEach, in: {items: [a, hold b, c]}, with: {concurrency: 3, body: {nodes: {say: {type: llmRequest, in: {message: \"{{ inputs.item }}\"}}}, outputs: {result: \"{{ say.text }}\"}}}}\n", "{{ each.results[1] }}"),
			want: "answer to hold b", repeatedEffects: []string{"asked hold b"},
		},
		{
			name: "a child run", uses: calledFlow, flow: flow("  f: {type: first}\n  c: {type: flow, after: f, with: {flow: called}}\n", "{{ c.outputs.text }}"),
			want: "answer to inner hold", onceEffects: []string{"first"}, repeatedEffects: []string{"asked inner hold"},
		},
		{
			name: "a flow that is a tool", flow: flow("  say: {type: llmRequest, in: {message: call called, tools: [called]}}\n", "{{ say.text }}"),
			want: "answer to answer to inner hold", onceEffects: []string{"asked call called"}, repeatedEffects: []string{"asked inner hold"},
		},
		{
			name: "the backoff of a retry", flow: flow("  try: {type: flaky, retry: {attempts: 2, backoff: 700ms}}\n", "{{ try.text }}"), until: "node.retrying",
			want: "at last",
		},
		{
			name: "a timer that comes due meanwhile", flow: flow("  nap: {type: wait, with: {for: 300ms}}\n  say: {type: llmRequest, after: nap, in: {message: late}}\n", "{{ say.text }}"), until: "node.waiting",
			want: "answer to late",
		},
		{name: "a timer that is not due", flow: flow("  nap: {type: wait, with: {for: 1h}}\n", "x"), until: "node.waiting"},
		{
			name: "a question", flow: flow("  ask: {type: userInput, with: {prompt: \"Which?\"}}\n  say: {type: llmRequest, after: ask, in: {message: \"{{ ask.text }}\"}}\n", "{{ say.text }}"), until: "node.waiting",
			want: "answer to this", answer: "this",
		},
		{
			name: "an outside event", flow: flow("  ev: {type: waitEvent, with: {name: paid}}\n", "{{ ev.value }}"), until: "node.waiting",
			want: "paid", answer: "paid",
		},
		{name: "a round that streams", flow: session, messages: []string{"hold"}, want: "answer to hold", repeatedEffects: []string{"asked hold"}},
		{name: "messages in the queue", flow: session, messages: []string{"hold", "second", "third"}, want: "answer to third", repeatedEffects: []string{"asked hold"}, onceEffects: []string{"asked second", "asked third"}},
		{name: "a message whose round has not begun", flow: session, messages: []string{"one"}, stopped: true, want: "answer to one", onceEffects: []string{"asked one"}},
	}
}

// holdingStore holds what a process does with its store.
type holdingStore struct {
	*store.Full
	reached func()
}

// Append stops before the commit that makes a round.
func (h *holdingStore) Append(context.Context, []store.Append) []error {
	h.reached()
	select {} // until the process is killed
}

// start has a process start the work.
func (l *recoveryCase) start(ctx context.Context, w *recoveryWorld) (*weir.Weir, error) {
	if l.messages != nil { // the first may hold before the last is sent
		sent, reached := make(chan struct{}), w.reached
		w.reached = func() {
			<-sent
			reached()
		}
		defer close(sent)
	}
	var wrap func(weir.Store) weir.Store
	if l.stopped {
		wrap = func(s weir.Store) weir.Store {
			return &holdingStore{Full: store.Complete(s), reached: func() { w.once.Do(w.reached) }}
		}
	}
	eng, err := w.open(wrap)
	if err != nil {
		return nil, err
	}
	f, err := l.load(eng)
	if err != nil {
		return nil, err
	}
	if l.messages != nil {
		return eng, l.talk(ctx, eng, f)
	}
	if l.fork != "" {
		return eng, l.startFork(ctx, eng, f)
	}
	run, err := eng.Start(ctx, f, weir.Start{ID: "therun"})
	if err != nil {
		return nil, err
	}
	if l.until != "" {
		go w.watch(ctx, run, l.until)
	}
	return eng, nil
}

// startFork runs the flow to its end and starts the fork of the run.
func (l *recoveryCase) startFork(ctx context.Context, eng *weir.Weir, f *weir.Flow) error {
	run, err := eng.Start(ctx, f, weir.Start{ID: "first"})
	if err != nil {
		return err
	}
	if _, err := run.Wait(ctx); err != nil {
		return err
	}
	if f, err = eng.Parse("fork.yaml", []byte(l.fork)); err != nil {
		return err
	}
	_, _, err = eng.Fork(ctx, "first", weir.ForkOptions{ID: "therun", From: "from", Flow: f, Model: l.forkModel})
	return err
}

// watch reports when an event of a kind has happened.
func (w *recoveryWorld) watch(ctx context.Context, run *weir.Run, kind string) {
	for item, err := range run.Events(ctx) {
		if err == nil && item.Event != nil && item.Event.Kind() == kind {
			w.once.Do(w.reached)
		}
	}
}

// talk sends the messages of a session, and waits for nothing.
func (l *recoveryCase) talk(ctx context.Context, eng *weir.Weir, f *weir.Flow) error {
	s, err := eng.Session(ctx, f, weir.SessionOptions{ID: "talk", New: true})
	if err != nil {
		return err
	}
	for i, text := range l.messages {
		if _, err := s.Send(ctx, text, weir.SendOptions{ID: fmt.Sprint("message", i)}); err != nil {
			return err
		}
	}
	return nil
}

func (l *recoveryCase) load(eng *weir.Weir) (*weir.Flow, error) {
	var uses []*weir.Flow
	if l.uses != "" {
		f, err := eng.Parse("called.yaml", []byte(l.uses))
		if err != nil {
			return nil, err
		}
		uses = append(uses, f)
	}
	return eng.Parse("left.yaml", []byte(l.flow), uses...)
}

// TestProcessOfRecovery is what the other process of these tests runs.
func TestProcessOfRecovery(t *testing.T) {
	name := os.Getenv("WEIR_LEFT")
	if name == "" {
		t.Skip("is run by the tests of recovery")
	}
	w := &recoveryWorld{dir: os.Getenv("WEIR_DIR"), firstProcess: os.Getenv("WEIR_HOLDS") != "", recover: os.Getenv("WEIR_RECOVER") != ""}
	w.reached = func() { _, _ = os.Stdout.WriteString("reached\n") }
	var eng *weir.Weir
	var err error
	switch flow := os.Getenv("WEIR_FLOW"); {
	case name == "recover until idle":
		w.deadly = true
		if eng, err = w.open(nil); err == nil {
			untilIdle(t, eng)
		}
	case name == "neighbours":
		eng, err = startNeighbours(t.Context(), w)
	case flow != "":
		eng, err = (&recoveryCase{flow: flow}).start(t.Context(), w)
	default:
		for _, l := range append(recoveryCases(), lackingCases()...) {
			if l.name == name {
				eng, err = l.start(t.Context(), w)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(os.Stdin) // until the other side says so
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	if err := eng.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// startNeighbours starts a run that ends its process and others besides it.
func startNeighbours(ctx context.Context, w *recoveryWorld) (*weir.Weir, error) {
	eng, err := w.open(nil)
	if err != nil {
		return nil, err
	}
	var all atomic.Int32
	w.reached = func() {}
	reached := func() {
		if all.Add(1) == 4 {
			_, _ = os.Stdout.WriteString("reached\n")
		}
	}
	for i, id := range []string{"n1", "n2", "deadly", "n3"} {
		text := strings.Replace(crashingFlow, "type: deadly", "type: work", 1)
		if id == "deadly" {
			text = crashingFlow
		}
		f, err := eng.Parse("flow.yaml", []byte(strings.Replace(text, "name: deadly", "name: "+id, 1)))
		if err != nil {
			return nil, err
		}
		run, err := eng.Start(ctx, f, weir.Start{ID: id})
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
		go func() {
			for item, err := range run.Events(ctx) {
				if err == nil && item.Event != nil && item.Event.Kind() == "node.started" {
					reached()
				}
			}
		}()
	}
	return eng, nil
}

// untilIdle returns once nothing more can be continued.
func untilIdle(t *testing.T, eng *weir.Weir) {
	t.Helper()
	waitUntil(t, "all runs have ended or are set aside", func() bool {
		runs, err := eng.Runs(t.Context(), store.Filter{Status: []engine.Status{engine.Running}})
		return err == nil && len(runs) == len(eng.Blocked())
	})
}

// process is another process that executes what the tests of recovery left.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startProcess starts one and returns once it has come far enough.
func startProcess(t *testing.T, dir, what string, env ...string) *process {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestProcessOfRecovery$", "-test.v")
	c.Env = append(append(os.Environ(), "WEIR_LEFT="+what, "WEIR_DIR="+dir), env...)
	var errs strings.Builder
	c.Stderr = &errs
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{c, in, bufio.NewScanner(out)}
	t.Cleanup(func() { _ = c.Process.Kill() })
	var said []string
	for p.out.Scan() {
		if strings.TrimSpace(p.out.Text()) == "reached" {
			return p
		}
		said = append(said, p.out.Text())
	}
	t.Fatalf("the process ended before it came so far: %s %s", strings.Join(said, "\n"), errs.String())
	return nil
}

// kill ends it as a crash does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
}

// close has it close its Weir and end.
func (p *process) close(t *testing.T) {
	t.Helper()
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for p.out.Scan() {
		said = append(said, p.out.Text())
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %s", err, strings.Join(said, "\n"))
	}
}
