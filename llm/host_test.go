package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// attempt is a host with a journal in memory: what an effect gave is kept as
// JSON under its key, and given back when the attempt is entered again.
type attempt struct {
	ctx     context.Context
	mu      sync.Mutex
	journal map[string][]byte
	// rejected are the errors of answers that were rejected, by key.
	rejected map[string]error
	digests  map[string]string
	models   int // ordinal of the last model call of this entry
	made     []string
	chunks   []llm.Chunk
	reqs     []*llm.Request
}

func newAttempt(ctx context.Context) *attempt {
	return &attempt{ctx: ctx, journal: map[string][]byte{}, digests: map[string]string{}}
}

func (a *attempt) Run() string { return "run1" }

func (a *attempt) MustCount() bool { return false }

// enter begins again from the top, as after a crash or a wait.
func (a *attempt) enter() { a.models, a.reqs = 0, nil }

func (a *attempt) ModelCall(req *llm.Request, do func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	a.models++
	a.reqs = append(a.reqs, req)
	key := fmt.Sprintf("run1/reply/model#%d", a.models)
	digest, err := req.Canonical()
	if err != nil {
		return nil, err
	}
	if old, ok := a.digests[key]; ok && old != string(digest) {
		return nil, fmt.Errorf("node_nondeterministic at %s:\n%s\n%s", key, old, digest)
	}
	a.digests[key] = string(digest)
	kept, ok := a.journal[key]
	if !ok {
		resp, err := do(a.ctx, key)
		if resp == nil {
			return nil, err
		}
		kept, unkept := json.Marshal(resp)
		if unkept != nil {
			return nil, unkept
		}
		a.made = append(a.made, key)
		a.journal[key] = kept
		if err != nil {
			if a.rejected == nil {
				a.rejected = map[string]error{}
			}
			a.rejected[key] = err
		}
		return resp, err
	}
	// Journals keep values, not bytes: the order of keys is lost.
	var v any
	if err := json.Unmarshal(kept, &v); err != nil {
		return nil, err
	}
	if kept, err = json.Marshal(v); err != nil {
		return nil, err
	}
	var resp llm.Response
	if err := json.Unmarshal(kept, &resp); err != nil {
		return nil, err
	}
	return &resp, a.rejected[key]
}

func (a *attempt) ToolCall(index int, t *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	key := fmt.Sprintf("run1/reply/tool#%d", index)
	a.mu.Lock()
	kept, ok := a.journal[key]
	a.mu.Unlock()
	var r llm.ToolResult
	if ok {
		err := json.Unmarshal(kept, &r)
		return r, err
	}
	text, err := t.Call(a.ctx, tool.Call{Key: key, Arguments: call.Arguments})
	if errors.Is(err, errWaits) {
		return r, err
	}
	r.Text = text
	if err != nil {
		r.Text, r.Failed = err.Error(), true
	}
	kept, err = json.Marshal(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made = append(a.made, key)
	a.journal[key] = kept
	return r, err
}

func (a *attempt) Emit(c llm.Chunk) { a.chunks = append(a.chunks, c) }

// errWaits is what a tool returns that waits for somebody.
var errWaits = errors.New("waits")

// answers is a provider that gives its answers in the order of the assistant
// messages there are, and remembers nothing.
type answers []llm.Response

func (a answers) Generate(_ context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	n := 0
	for _, m := range req.Messages {
		if m.Role == convo.Assistant {
			n++
		}
	}
	if n >= len(a) {
		return nil, &llm.Error{Code: "model_invalid_request", Message: "asked once too often"}
	}
	emit(llm.Chunk{Text: a[n].Message.Text})
	return &a[n], nil
}

func says(text string, calls ...convo.Call) llm.Response {
	return llm.Response{
		Message: convo.Message{Text: text, Calls: calls},
		Usage:   llm.Usage{Input: 10, Output: 1},
	}
}

func calls(id, name, arguments string) convo.Call {
	return convo.Call{ID: id, Name: name, Arguments: arguments}
}

func service(p llm.Provider) *llm.Service {
	return llm.NewService(llm.Options{Providers: map[string]llm.Provider{"p": p}})
}

func conversation(t *testing.T, ms ...convo.Message) *convo.Manager {
	t.Helper()
	c, err := convo.New("main", convo.Change{Create: true, Settings: &convo.Settings{Model: "p/m", System: "be kind"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(ms) > 0 {
		if c, err = c.Apply(convo.Change{Append: ms}); err != nil {
			t.Fatal(err)
		}
	}
	m := convo.NewManager(c, true)
	m.SetIDPrefix("reply")
	return m
}

func said(id, text string) *convo.Message {
	return &convo.Message{ID: id, Role: convo.User, Text: text}
}

// lines writes messages as "user: hi", "tool 1: done".
func lines(ms []convo.Message) []string {
	var out []string
	for _, m := range ms {
		s := string(m.Role)
		if m.Failed {
			s = "failed " + s
		}
		if m.CallID != "" {
			s += " " + m.CallID
		}
		s += ": " + m.Text
		for _, c := range m.Calls {
			s += " [" + c.ID + " " + c.Name + c.Arguments + "]"
		}
		out = append(out, s)
	}
	return out
}

func wantLines(t *testing.T, what string, ms []convo.Message, want ...string) {
	t.Helper()
	if got := lines(ms); !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func messagesOf(t *testing.T, m *convo.Manager) []convo.Message {
	t.Helper()
	ms, err := m.Get().Messages()
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Code != code {
		t.Fatalf("the error is %v, want code %s", err, code)
	}
}
