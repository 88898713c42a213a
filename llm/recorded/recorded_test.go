package recorded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
)

func request(key string, texts ...string) *llm.Request {
	r := &llm.Request{Key: key, Provider: "p", Model: "m", System: "be kind"}
	for i, text := range texts {
		role := convo.User
		if i%2 == 1 {
			role = convo.Assistant
		}
		r.Messages = append(r.Messages, convo.Message{Role: role, Text: text})
	}
	return r
}

func generate(t *testing.T, p llm.Provider, r *llm.Request) (*llm.Response, []llm.Chunk, error) {
	t.Helper()
	var chunks []llm.Chunk
	resp, err := p.Generate(t.Context(), r, func(c llm.Chunk) { chunks = append(chunks, c) })
	return resp, chunks, err
}

func wantDivergence(t *testing.T, err error, parts ...string) {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Code != "replay_divergence" || e.Retry {
		t.Fatalf("the error is %v, want a replay_divergence that is not tried again", err)
	}
	for _, p := range parts {
		if !strings.Contains(e.Message, p) {
			t.Errorf("the error does not say %q:\n%s", p, e.Message)
		}
	}
}

// model repeats the question, and fails once if so configured.
type model struct{ fail error }

func (m *model) Generate(_ context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if err := m.fail; err != nil {
		m.fail = nil
		return nil, err
	}
	last := r.Messages[len(r.Messages)-1].Text
	emit(llm.Chunk{Text: last})
	return &llm.Response{
		Message: convo.Message{
			Role: convo.Assistant, Text: "<you said> " + last, Reasoning: "hm",
			Calls: []convo.Call{{ID: "1", Name: "f", Arguments: "{}"}}, Native: json.RawMessage(`{"b":1}`),
		},
		Usage: llm.Usage{Input: 3, Output: 4}, Stop: "calls", Model: "m-1", ID: "resp_1",
	}, nil
}

func TestRecordingIsReplayedInAnotherRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	rec, err := recorded.NewFileRecorder(path)
	if err != nil {
		t.Fatal(err)
	}
	p := rec.Wrap(&model{})
	live, _, err := generate(t, p, request("run1/refine#2/reply/model#1", "hi"))
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	replay, err := recorded.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	again, chunks, err := generate(t, replay, request("run2/refine#2/reply/model#1", "hi"))
	if err != nil {
		t.Fatal(err)
	}
	if !again.Message.Equal(live.Message) || again.Usage != live.Usage || again.Stop != "calls" || again.ID != "resp_1" {
		t.Errorf("replayed %+v, was %+v", again, live)
	}
	var text, reasoning, called string
	var usage llm.Usage
	for _, c := range chunks {
		text += c.Text
		reasoning += c.Reasoning
		if c.Call != nil {
			called += c.Call.Name
		}
		if c.Usage != nil {
			usage = *c.Usage
		}
	}
	if text != again.Message.Text || reasoning != "hm" || called != "f" || usage != again.Usage {
		t.Errorf("streamed %q %q %q %v", text, reasoning, called, usage)
	}
}

func TestADifferenceIsShownWithItsPlace(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := recorded.NewRecorder(&b).Wrap(&model{})
	if _, _, err := generate(t, p, request("run1/reply/model#1", "hi", "hello", "the quick brown fox")); err != nil {
		t.Fatal(err)
	}
	replay, err := recorded.New(decode(t, b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	key := "r/reply/model#1"
	for name, c := range map[string]struct {
		r    *llm.Request
		want []string
	}{
		"a word": {request(key, "hi", "hello", "the quick green fox"), []string{
			"replay of reply/model#1: the request differs from the recording: message 3 text, character 11:",
			`recorded: "the quick brown fox"`, `request:  "the quick green fox"`,
		}},
		"a message more": {request(key, "hi", "hello", "the quick brown fox", "and"), []string{
			": message 4:", "recorded: (nothing)", `request:  assistant "and"`,
		}},
		"a message less": {request(key, "hi", "hello"), []string{": message 3:", "request:  (nothing)"}},
		"another model": {func() *llm.Request {
			r := request(key, "hi", "hello", "no")
			r.Model = "n"
			return r
		}(), []string{": model, character 1:"}},
		"a limit": {func() *llm.Request {
			r := request(key, "hi", "hello", "the quick brown fox")
			r.MaxOutput = 7
			return r
		}(), []string{": max_output:", "recorded: (nothing)", `request:  "7"`}},
		"another key": {request("r/other/model#1", "hi"), []string{
			"replay of other/model#1: no call was recorded at this key; it has reply/model#1",
		}},
	} {
		_, chunks, err := generate(t, replay, c.r)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantDivergence(t, err, c.want...)
			if len(chunks) > 0 {
				t.Errorf("it streamed %v", chunks)
			}
		})
	}
}

func decode(t *testing.T, b []byte) []llm.Recording {
	t.Helper()
	var out []llm.Recording
	for line := range bytes.Lines(b) {
		var r llm.Recording
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestFailedCallsAreRecordedAndTheLastOutcomeCounts(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	rec := recorded.NewRecorder(&b)
	m := &model{fail: &llm.Error{Code: "model_overloaded", Message: "busy", Retry: true}}
	p := rec.Wrap(m)
	r := request("run1/reply/model#1", "hi")
	if _, _, err := generate(t, p, r); err == nil {
		t.Fatal("the failure was swallowed")
	}
	replay, err := recorded.New(decode(t, b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = generate(t, replay, r)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Code != "model_overloaded" || e.Message != "busy" || e.Retry {
		t.Errorf("the failure is replayed as %v", err)
	}
	if _, _, err := generate(t, p, r); err != nil {
		t.Fatal(err)
	}
	m.fail = errors.New("a bug")
	if _, _, err := generate(t, p, request("run1/reply/model#2", "hi")); err == nil {
		t.Fatal("the failure was swallowed")
	}
	recs := decode(t, b.Bytes())
	if len(recs) != 3 || recs[2].Error == nil || recs[2].Error.Code != "model_unavailable" {
		t.Fatalf("recorded %+v", recs)
	}
	if replay, err = recorded.New(recs); err != nil {
		t.Fatal(err)
	}
	if resp, _, err := generate(t, replay, r); err != nil || resp.Message.Text != "<you said> hi" {
		t.Errorf("after the retry: %v, %v", resp, err)
	}
}

func TestAbandonedCallIsNotRecorded(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := recorded.NewRecorder(&b).Wrap(&model{fail: context.Canceled})
	if _, err := p.Generate(ctx, request("r/a#1", "hi"), func(llm.Chunk) {}); !errors.Is(err, context.Canceled) || b.Len() > 0 {
		t.Errorf("recorded %q, %v", b.String(), err)
	}
}

func TestAnUnfinishedLastLineIsLeftOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	write := func(key string) {
		rec, err := recorded.NewFileRecorder(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := generate(t, rec.Wrap(&model{}), request(key, "hi")); err != nil {
			t.Fatal(err)
		}
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write("r/a#1")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"key":"half` + strings.Repeat("x", 100_000)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := recorded.Open(path); err != nil {
		t.Errorf("opening it with half a line: %v", err)
	}
	write("r/b#1")
	replay, err := recorded.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"r/a#1", "r/b#1"} {
		if _, _, err := generate(t, replay, request(key, "hi")); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestADamagedRecordingIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	if err := os.WriteFile(path, []byte("\n{\"key\":}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := recorded.Open(path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("the error is %v", err)
	}
	if _, err := recorded.Open(path + ".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	for _, r := range []llm.Recording{{Key: "a", Request: []byte(`{}`)}, {Key: "a", Error: &llm.RecordedError{}}} {
		if _, err := recorded.New([]llm.Recording{r}); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
}

func TestManyCallsAtOnceAreEachOneLine(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := recorded.NewRecorder(&b).Wrap(&model{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := p.Generate(t.Context(), request("r/a#1", "hi"), func(llm.Chunk) {}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(decode(t, b.Bytes())); n != 160 {
		t.Errorf("%d lines for 160 calls", n)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestFailedRecordingIsReportedByCloseAndNotByTheCall(t *testing.T) {
	t.Parallel()
	rec := recorded.NewRecorder(full{})
	if _, _, err := generate(t, rec.Wrap(&model{}), request("r/a#1", "hi")); err != nil {
		t.Error(err)
	}
	if err := rec.Close(); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("Close says %v", err)
	}
}

func TestScriptAnswersByLengthOfConversation(t *testing.T) {
	t.Parallel()
	s := recorded.NewScripted("a first answer of some length, in pieces", "second")
	for range 2 { // asking again gives the same
		resp, chunks, err := generate(t, s, request("r/a#1", "hi"))
		if err != nil || resp.Message.Text != "a first answer of some length, in pieces" || len(chunks) < 3 {
			t.Errorf("got %v in %d pieces, %v", resp, len(chunks), err)
		}
		var text string
		for _, c := range chunks {
			text += c.Text
		}
		if text != resp.Message.Text {
			t.Errorf("the pieces are %q", text)
		}
	}
	if resp, _, err := generate(t, s, request("r/a#2", "hi", "hello", "more")); err != nil || resp.Message.Text != "second" {
		t.Errorf("got %v, %v", resp, err)
	}
	_, _, err := generate(t, s, request("r/a#3", "hi", "hello", "more", "second", "more"))
	wantDivergence(t, err, "the script has 2 turns, but the model was called for turn 3")
}

func TestScriptFileAnswersByNumberOfCall(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "script.yaml")
	script := `
work:
  turns:
    - {text: I look., calls: [{tool: find, arguments: {n: 1, deep: {a: [true]}}}, stop]}
    - It is found.
loop/work:
  - first
  - turns: [{calls: [find]}, second]
same: always
work:plan: a plan
work:post.2: {turns: [after, more]}
loop/work:plan: [one, two]
`
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	f := recorded.NewScriptFiles()
	for _, c := range []struct{ key, text, calls string }{
		{"r/work/model#1", "I look.", `find{"deep":{"a":[true]},"n":1} stop{}`},
		{"r/work/model#2", "It is found.", ""},
		{"r/work/model#2", "It is found.", ""},
		{"r/work/model#3", "!", "replay_divergence"},
		{"r/loop#1/work/model#1", "first", ""},
		{"r/loop#1/work/model#2", "first", ""},
		{"r/loop#2/work/model#1", "", "find{}"},
		{"r/loop#2/work/model#2", "second", ""},
		{"r/same/model#7", "always", ""},
		{"r/same/plan#1", "always", ""},
		{"r/work/plan#1", "a plan", ""},
		{"r/work/post.2.model#1", "after", ""},
		{"r/work/post.2.model#2", "more", ""},
		{"r/work/post.2@3.model#2", "more", ""},
		{"r/work/post.1.model#2", "It is found.", ""},
		{"r/loop#2/work/plan#1", "two", ""},
	} {
		resp, err := f.Generate(t.Context(), &llm.Request{Key: c.key, Model: file}, func(llm.Chunk) {})
		if e, ok := errors.AsType[*llm.Error](err); ok {
			resp = &llm.Response{Message: convo.Message{Text: "!", Calls: []convo.Call{{Name: e.Code}}}}
		} else if err != nil {
			t.Fatal(err)
		}
		var calls []string
		for _, call := range resp.Message.Calls {
			calls = append(calls, call.Name+call.Arguments)
		}
		if got := strings.Join(calls, " "); resp.Message.Text != c.text || got != c.calls {
			t.Errorf("%s says %q and calls %q; expected %q, %q", c.key, resp.Message.Text, got, c.text, c.calls)
		}
	}
	for _, wrong := range []string{
		"a: []", "a: {turns: []}", "a: {turns: x}", "a: {turn: [x]}", "a: {turns: [x], more: 1}", "a: [[x]]",
		"a: {turns: [{calls: find}]}", "a: {turns: [{}]}", "a: {turns: [{calls: [{name: find}]}]}", "a: {turns: [[x]]}",
		"a: {turns: [{calls: [{tool: find, arguments: [1]}]}]}", "[a]",
	} {
		if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := recorded.CheckScript(file); err == nil {
			t.Errorf("%s is taken for a script", wrong)
		}
	}
	if err := os.WriteFile(file, []byte("[a, b]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := recorded.CheckScript(file); err == nil || !strings.Contains(err.Error(), "expected an object with the answers of each node") {
		t.Errorf("a list for a script: %v", err)
	}
}
