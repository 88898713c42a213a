package builtin_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	memorytool "github.com/weir-run/weir/tool/memory"
	"github.com/weir-run/weir/weirtest"
)

// probeFlow is a flow around one node, called n, and the world that it runs in.
type probeFlow struct {
	typ string
	// in and with are the node's, by name, as YAML on one line; keys are its other keys.
	in, with, keys map[string]string
	// more are further nodes, outputs the flow's, top its other keys, all as YAML.
	more, outputs, top string
	files              map[string]string
	answers            map[string]any
	script             []weirtest.Turn
	inputs             map[string]any
	// twice runs the flow a second time in the same process, with these inputs.
	twice map[string]any
	// secondUser is whose the second run is; "" is the first one's.
	secondUser string
	// body replaces what nodes of the type under test do.
	body func(n node.Node, ctx *node.Ctx) error
	// status is that of every HTTP response, 0 is 200; fault fails the exchange.
	status int
	fault  error
	// slow are executors and tools that end with their time only.
	slow bool
	// timed runs wait for a timer, which none of them sees fire.
	timed bool
	// compare chooses what of the record counts; "" is all of it.
	compare string
}

// change is s with other values of one setting, key or input.
func (s probeFlow) set(what map[string]string, name, value string) map[string]string {
	out := maps.Clone(what)
	if out == nil {
		out = map[string]string{}
	}
	out[name] = value
	return out
}

// settings is s with a setting, nested where its name has a dot.
func (s probeFlow) setting(name, value string) probeFlow {
	first, rest, nested := strings.Cut(name, ".")
	switch {
	case nested && strings.HasPrefix(value, "["): // a list, which the value gives whole
		name = first
	case nested:
		others := strings.TrimSuffix(strings.TrimPrefix(s.with[first], "{"), "}")
		if others != "" {
			others += ", "
		}
		name, value = first, "{"+others+rest+": "+value+"}"
	}
	s.with = s.set(s.with, name, value)
	return s
}

// key is s with a node key.
func (s probeFlow) key(name, value string) probeFlow {
	s.keys = s.set(s.keys, name, value)
	return s
}

// members writes an object on one line.
func members(of map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		if of[k] != "" {
			parts = append(parts, k+": "+of[k])
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// text returns the flow as a file.
func (s probeFlow) text() string {
	n := map[string]string{"type": s.typ}
	maps.Copy(n, s.keys)
	if len(s.in) > 0 {
		n["in"] = members(s.in)
	}
	if len(s.with) > 0 {
		n["with"] = members(s.with)
	}
	var b strings.Builder
	b.WriteString("weir: 1\nname: probe\ndescription: probes one node\n")
	if !strings.Contains(s.top, "context:") {
		b.WriteString("context: {model: script/one}\n")
	}
	b.WriteString(s.top)
	b.WriteString("nodes:\n  n: " + members(n) + "\n" + s.more)
	if s.outputs != "" {
		b.WriteString("outputs: " + s.outputs + "\n")
	}
	return b.String()
}

// externalRecorder records what leaves the process, and answers.
type externalRecorder struct {
	s  *probeFlow
	mu sync.Mutex
	// all is one line for each request, in order.
	all            []string
	remainingTurns []weirtest.Turn
	asked          int
}

func (o *externalRecorder) note(kind string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b = fmt.Appendf(nil, "%+v", v)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, kind+" "+string(b))
}

// Generate implements weir.Provider: the script's turns, then "ok".
func (o *externalRecorder) Generate(_ context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	o.note("model", map[string]any{
		"provider": req.Provider, "model": req.Model, "system": req.System, "messages": req.Messages, "tools": len(req.Tools), "timeouts": []time.Duration{req.Timeouts.First, req.Timeouts.Idle, req.Timeouts.Total},
		"temperature": req.Temperature, "maxOutput": req.MaxOutput, "reasoning": req.Reasoning, "schema": req.Schema, "keep": req.KeepSession,
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	turn := weirtest.Turn{Message: convo.Message{Text: "ok"}}
	if len(o.remainingTurns) > 0 {
		turn, o.remainingTurns = o.remainingTurns[0], o.remainingTurns[1:]
	}
	if turn.Error != nil {
		return nil, turn.Error
	}
	m := turn.Message
	m.Role = convo.Assistant
	m.Calls = slices.Clone(m.Calls)
	for i := range m.Calls {
		m.Calls[i].ID = fmt.Sprintf("call-%d-%d", o.asked, i)
	}
	emit(llm.Chunk{Text: m.Text})
	return &llm.Response{Message: m, Model: req.Model, Stop: "end", Usage: llm.Usage{Input: 50, Output: 20}}, nil
}

// Do implements node.HTTPDoer.
func (o *externalRecorder) Do(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	o.note("http", map[string]any{"method": req.Method, "url": req.URL.String(), "accept": req.Header.Get("accept"), "body": string(body)})
	if o.s.fault != nil {
		return nil, o.s.fault
	}
	if o.s.slow {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	status := o.s.status
	if status == 0 {
		status = 200
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Request: req, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(bytes.Repeat([]byte("x"), 1000)))}, nil
}

// recordingExecutor is an executor that says what it was given to run.
type recordingExecutor struct {
	o              *externalRecorder
	name, language string
}

func (r recordingExecutor) Name() string                { return r.name }
func (r recordingExecutor) Language() string            { return r.language }
func (r recordingExecutor) Probe(context.Context) error { return nil }
func (r recordingExecutor) Check(context.Context, *sandbox.Job) ([]sandbox.Problem, error) {
	return nil, nil
}

func (r recordingExecutor) Run(_ context.Context, job *sandbox.Job) (*sandbox.Result, error) {
	var files []string
	for _, f := range job.Files {
		files = append(files, f.Name)
	}
	r.o.note("code", map[string]any{"executor": r.name, "language": r.language, "code": job.Code, "time": job.Limits.Time, "files": files})
	if strings.Contains(job.Code, "raise") {
		return nil, &sandbox.Error{Code: engine.CodeCodeFailed, Message: "raised"}
	}
	out := &sandbox.Result{Set: map[string]any{"amount": int64(len(job.Code))}}
	if job.Decision {
		out.Branch = "true"
	}
	return out, nil
}

// recordingCache is a store that reports what is kept across runs, and for how long.
type recordingCache struct {
	*memory.Store
	o *externalRecorder
}

// Capabilities has the cache use the methods of this store.
func (s recordingCache) Capabilities() store.Capabilities {
	c := s.Store.Capabilities()
	c.Cache = s
	return c
}

func (s recordingCache) CachePut(ctx context.Context, key string, v engine.Value, expires time.Time) error {
	hours := "for ever"
	if !expires.IsZero() {
		hours = time.Until(expires).Round(time.Hour).String()
	}
	s.o.note("keep", hours)
	return s.Store.CachePut(ctx, key, v, expires)
}

// replacedType is a node type that does something else.
type replacedType struct {
	weir.Type
	body func(n node.Node, ctx *node.Ctx) error
}

func (r replacedType) Prepare(with map[string]any) (node.Node, error) {
	n, err := r.Type.Prepare(with)
	if err != nil {
		return nil, err
	}
	return node.NodeFunc(func(ctx *node.Ctx) error { return r.body(n, ctx) }), nil
}

// fillType returns a node type that puts a long conversation into its context.
func fillType() weir.Type {
	return weir.Func("filled", func(ctx weir.Ctx, _ struct{}) (struct{}, error) {
		m, err := ctx.Context()
		if err != nil {
			return struct{}{}, err
		}
		var ms []convo.Message
		for i := range 12 {
			id := fmt.Sprintf("c%d", i)
			ms = append(
				ms, convo.Message{Role: convo.User, Text: fmt.Sprintf("question %d %s", i, strings.Repeat("water ", 40))},
				convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: id, Name: "look", Arguments: "{}"}}},
				convo.Message{Role: convo.Tool, CallID: id, Name: "look", Text: strings.Repeat("river ", 60)},
				convo.Message{Role: convo.Assistant, Text: fmt.Sprintf("answer %d", i)},
			)
		}
		_, err = m.AddAll(ms)
		return struct{}{}, err
	}).WritesContext()
}

// look returns the tool that models may call.
func (o *externalRecorder) look() *weir.Tool {
	return &weir.Tool{
		Name: "look", ReadOnly: true,
		Parameters: map[string]any{"type": "object"},
		Call: func(_ context.Context, c tool.Call) (string, error) {
			o.note("tool", c.Arguments)
			if errors.Is(o.s.fault, tool.ErrOutcomeUnknown) {
				return "", o.s.fault
			}
			return "saw " + strings.Repeat("reed ", 300), nil
		},
	}
}

// openWeir opens the process of a stage.
func (s *probeFlow) openWeir(t *testing.T, o *externalRecorder) *weir.Weir {
	t.Helper()
	kept := memory.New()
	tools, err := memorytool.Tools(kept, memorytool.Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{
		Store: recordingCache{kept, o}, Replay: o, HTTP: o, Tools: append(tools, o.look()), Types: []weir.Type{fillType()},
		Executors: []sandbox.Executor{recordingExecutor{o, "python", "python"}, recordingExecutor{o, "starlark", "starlark"}, recordingExecutor{o, "e2b", "python"}},
		Wrap: func(typ weir.Type) weir.Type {
			if s.body == nil || typ.Spec().Name != s.typ {
				return typ
			}
			return replacedType{typ, s.body}
		},
		Secrets: func(string) (string, bool) { return "opensesame", true },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// load reads the flow; the error is an *flow.Invalid where it is refused.
func (s *probeFlow) load(w *weir.Weir) (*weir.Flow, error) {
	return w.ParseIn(flow.MemFiles(s.files), "flow.yaml", []byte(s.text()))
}

// run runs the stage and is what happened, line by line. The error says why the flow
// is refused.
func (s probeFlow) run(t *testing.T) ([]string, error) {
	t.Helper()
	o := &externalRecorder{s: &s, remainingTurns: s.script}
	w := s.openWeir(t, o)
	defer func() { // not at the end of the test, which runs thousands
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	f, err := s.load(w)
	if err != nil {
		if _, ok := errors.AsType[*flow.Invalid](err); !ok {
			t.Fatalf("%v in\n%s", err, s.text())
		}
		return nil, err
	}
	lines := s.runOnce(t, w, f, weir.Start{ID: "run", Inputs: s.inputs, User: "ada"})
	if s.twice != nil {
		lines = append(lines, s.runOnce(t, w, f, weir.Start{ID: "again", Inputs: s.twice, User: cmp.Or(s.secondUser, "ada")})...)
	}
	if s.compare != "" {
		lines = slices.DeleteFunc(lines, func(l string) bool { return !strings.HasPrefix(l, s.compare) })
	}
	return append(lines, s.compared(o.all)...), nil
}

func (s probeFlow) compared(lines []string) []string {
	if s.compare == "" {
		return lines
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, s.compare) })
}

// runOnce returns what the record says of one run and its children.
func (s probeFlow) runOnce(t *testing.T, w *weir.Weir, f *weir.Flow, start weir.Start) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	id := start.ID
	run, err := w.Start(ctx, f, start)
	if err != nil {
		t.Fatalf("%v in\n%s", err, s.text())
	}
	var r weir.Result
	if s.timed {
		waitsForTimer(ctx, t, w, id)
	} else {
		r = s.answerAll(ctx, t, run)
	}
	if s.timed || r.Status == engine.Paused {
		if err := run.Cancel(ctx, "the test is over"); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	lines := []string{fmt.Sprintf("end %s %v", r.Status, r.Outputs)}
	for _, i := range r.Interrupts {
		lines = append(lines, fmt.Sprintf("waits %s %s %s", i.ID, i.Kind, i.Prompt))
	}
	runs, err := w.Runs(ctx, store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range runs {
		if info.ID != id && !strings.HasPrefix(info.ID, id+"~") && info.Parent != id {
			continue
		}
		lines = append(lines, eventsOf(ctx, t, w, info.ID, began)...)
	}
	return lines
}

// waitsForTimer returns once a run waits.
func waitsForTimer(ctx context.Context, t *testing.T, w *weir.Weir, id string) {
	t.Helper()
	for ctx.Err() == nil {
		view, err := w.Inspect(ctx, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range view.Commits {
			for _, e := range c.Events {
				switch e.(type) {
				case *engine.NodeWaiting, *engine.NodeRetrying:
					return
				}
			}
		}
		<-time.After(2 * time.Millisecond)
	}
	t.Fatal("the run never waits")
}

// answerAll answers what the run asks until it ends or asks what has no answer.
func (s probeFlow) answerAll(ctx context.Context, t *testing.T, run *weir.Run) weir.Result {
	t.Helper()
	for {
		r, err := run.Wait(ctx)
		if err != nil {
			t.Fatalf("%v in\n%s", err, s.text())
		}
		answered := false
		for _, i := range r.Interrupts {
			if a, ok := s.answers[i.ID]; ok && r.Status == engine.Paused {
				if err := run.Answer(ctx, i.ID, a); err != nil {
					return r
				}
				answered = true
			}
		}
		if !answered {
			return r
		}
	}
}

// eventsOf returns a run's events without what differs from run to run.
func eventsOf(ctx context.Context, t *testing.T, w *weir.Weir, id string, began time.Time) []string {
	t.Helper()
	view, err := w.Inspect(ctx, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range view.Commits {
		for _, e := range c.Events {
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatal(err)
			}
			b, err = json.Marshal(durationSchema(v, began))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, e.Kind()+" "+string(b))
		}
	}
	return lines
}

// durationSchema drops what differs from run to run, and what repeats the flow.
func durationSchema(v any, began time.Time) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range []string{"fingerprint", "closure", "specs", "us", "total_time_ms"} {
			delete(v, k)
		}
		for k, x := range v {
			if due, ok := x.(float64); ok && strings.EqualFold(k, "due") {
				x = time.UnixMilli(int64(due)).Sub(began).Round(time.Minute).String()
			}
			v[k] = durationSchema(x, began)
		}
	case []any:
		for i := range v {
			v[i] = durationSchema(v[i], began)
		}
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at.Sub(began).Round(10 * time.Minute).String()
		}
	}
	return v
}
