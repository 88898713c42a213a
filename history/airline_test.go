package history_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
)

// recording is one real conversation between a customer and GPT-4o, and how it
// ended: the customer said ###STOP###, a tool ended it, or the recording ran
// into its limit of 30 model calls.
type recording struct {
	id       string
	line     []byte
	system   string
	messages []convo.Message // without the system message
	said     []string        // the customer's messages
	// lastSteps are the model calls after the customer's last message, and
	// mostSteps the most there were after an earlier one.
	lastSteps, mostSteps int
}

const (
	goodbye  = "###STOP###"
	transfer = "transfer_to_human_agents"
)

// airline reads the recordings, or skips.
func airline(tb testing.TB) []recording {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("..", "shared", "data", "airline", "conversations.jsonl"))
	if err != nil {
		tb.Skipf("the airline conversations are not beside the repository: %v", err)
	}
	var all []recording
	for line := range bytes.Lines(data) {
		c, err := recorded.FromConversations(bytes.NewReader(line))
		if err != nil {
			tb.Fatal(err)
		}
		one := c.Conversations()[0]
		r := recording{id: one.ID, line: line, system: one.Messages[0].Text, messages: one.Messages[1:]}
		for _, m := range r.messages {
			switch m.Role {
			case convo.User:
				r.said = append(r.said, m.Text)
				r.mostSteps, r.lastSteps = max(r.mostSteps, r.lastSteps), 0
			case convo.Assistant:
				r.lastSteps++
			case convo.Tool, convo.System:
			}
		}
		all = append(all, r)
	}
	if len(all) != 120 {
		tb.Fatalf("%d recordings, expected 120", len(all))
	}
	return all
}

// cutOff reports whether the recording ended at its limit right after a tool
// that does not end a turn.
func (r *recording) cutOff() bool {
	last := r.messages[len(r.messages)-1]
	return last.Role == convo.Tool && last.Name != transfer
}

// unanswered reports whether the recording ended at its limit before the
// model answered the customer's last message.
func (r *recording) unanswered() bool {
	last := r.messages[len(r.messages)-1]
	return last.Role == convo.User && !strings.Contains(last.Text, goodbye)
}

// toolbox are the tools of a recording: each call is checked against the
// recorded one and answered with its result, in order. Ids of calls repeat in
// the recordings and say nothing.
type toolbox struct {
	mu      sync.Mutex
	calls   []convo.Call
	results []string
	next    int
}

func newToolbox(r recording) *toolbox {
	b := &toolbox{}
	for _, m := range r.messages {
		b.calls = append(b.calls, m.Calls...)
		if m.Role == convo.Tool {
			b.results = append(b.results, m.Text)
		}
	}
	return b
}

func (b *toolbox) call(name, arguments string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == len(b.calls) {
		return "", fmt.Errorf("%s is called after the last recorded call", name)
	}
	c := b.calls[b.next]
	if c.Name != name || c.Arguments != arguments {
		return "", fmt.Errorf("call %d is %s(%s), recorded was %s(%s)", b.next+1, name, arguments, c.Name, c.Arguments)
	}
	b.next++
	return b.results[b.next-1], nil
}

func (b *toolbox) tools() []*weir.Tool {
	var out []*weir.Tool
	for _, c := range b.calls {
		if slices.ContainsFunc(out, func(t *weir.Tool) bool { return t.Name == c.Name }) {
			continue
		}
		out = append(out, &weir.Tool{
			Name: c.Name, EndsTurn: c.Name == transfer,
			Parameters: map[string]any{"type": "object"},
			Call:       func(_ context.Context, call tool.Call) (string, error) { return b.call(c.Name, call.Arguments) },
		})
	}
	return out
}

// definition returns the flow of a recording: one iteration of the loop is one turn,
// until the customer says goodbye or a tool hands them over.
func (r *recording) definition() weir.Definition {
	maxSteps := 30
	if r.cutOff() {
		maxSteps = r.lastSteps
	}
	over := `inputs.said.contains("` + goodbye + `")`
	said := map[string]any{"said": "{{ customer.text }}"}
	if r.unanswered() {
		said["turn"] = "{{ inputs.index }}"
		over += fmt.Sprintf(" || inputs.turn == %d", len(r.said)-1)
	}
	return weir.Definition{
		Name:    r.id,
		Context: map[string]any{"model": "recorded/gpt-4o", "system": r.system},
		Nodes: map[string]weir.NodeSpec{"talk": {Type: "loop", With: map[string]any{
			"until": `outputs.over == "yes" || outputs.stop != "end"`,
			"body": map[string]any{
				"nodes": map[string]any{
					"toolbox":  map[string]any{"type": "tools"},
					"customer": map[string]any{"type": "userInput", "with": map[string]any{"history": true}},
					"over": map[string]any{
						"type": "decision",
						"in":   said,
						"with": map[string]any{"expr": over + ` ? "yes" : "no"`, "branches": []any{"yes", "no"}},
					},
					"agent": map[string]any{
						"type":  "llmRequest",
						"after": "over.no",
						"in":    map[string]any{"context": "{{ customer.context }}", "tools": "{{ toolbox.tools }}"},
						"with":  map[string]any{"maxSteps": maxSteps, "atMax": "stop"},
					},
				},
				"outputs": map[string]any{"over": "{{ over.result }}", "stop": "{{ agent.stop }}"},
			},
		}}},
		Outputs: map[string]any{"turns": "{{ talk.iterations }}"},
	}
}

// unclosedStore is a store that outlives the Weirs opened over it.
type unclosedStore struct{ weir.Store }

// Close leaves the store open.
func (unclosedStore) Close() error { return nil }

// replayedTalk is a recording on its way through a Weir.
type replayedTalk struct {
	r     recording
	tools *toolbox
	model weir.Provider
}

func newReplayedTalk(t *testing.T, r recording) *replayedTalk {
	t.Helper()
	model, err := recorded.FromConversations(bufio.NewReader(bytes.NewReader(r.line)))
	if err != nil {
		t.Fatal(err)
	}
	return &replayedTalk{r, newToolbox(r), model}
}

// open opens a Weir for the conversation, over a store of its own or a given one.
func (h *replayedTalk) open(t *testing.T, s weir.Store) *weir.Weir {
	t.Helper()
	w, err := weir.Open(weir.Options{
		Store: s, Tools: h.tools.tools(),
		Providers: map[string]weir.Provider{"recorded": h.model},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// question returns the one interrupt a paused run waits on.
func question(t *testing.T, res weir.Result) string {
	t.Helper()
	if res.Status != engine.Paused || len(res.Interrupts) != 1 {
		t.Fatalf("the run is %s with %d questions (%v)", res.Status, len(res.Interrupts), res.Error)
	}
	return res.Interrupts[0].ID
}

// replay has the conversation again. Reopen, where it is not nil, replaces the
// Weir before every answer, as if the process had ended meanwhile.
func (h *replayedTalk) replay(t *testing.T, w *weir.Weir, reopen func(*weir.Weir) *weir.Weir) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f, err := w.Define(h.r.definition())
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(ctx, f, weir.Start{ID: h.r.id})
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Wait(ctx)
	for _, said := range h.r.said {
		if err != nil {
			t.Fatal(err)
		}
		ask := question(t, res)
		if reopen != nil {
			w = reopen(w)
		}
		if run, err = w.Answer(ctx, h.r.id, ask, said, "customer"); err != nil {
			t.Fatal(err)
		}
		res, err = run.Wait(ctx)
	}
	if err != nil || res.Status != engine.Completed {
		t.Fatalf("the run is %s: %v, %v", res.Status, res.Error, err)
	}
	if n, err := weir.Output[int](res, "turns"); err != nil || n != len(h.r.said) {
		t.Errorf("%d turns (%v), expected %d", n, err, len(h.r.said))
	}
	h.check(t, w)
	closeWeir(t, w)
}

func closeWeir(t *testing.T, w *weir.Weir) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// check compares the main context with the recording, message for message.
func (h *replayedTalk) check(t *testing.T, w *weir.Weir) {
	t.Helper()
	view, err := w.Inspect(t.Context(), h.r.id, 0)
	if err != nil {
		t.Fatal(err)
	}
	main := view.Contexts[engine.MainContext]
	if main.Settings.System != h.r.system {
		t.Errorf("the instructions are not the recorded ones")
	}
	got, err := main.Messages()
	if err != nil {
		t.Fatal(err)
	}
	if diff := differ(got, h.r.messages); diff != nil {
		t.Error(diff)
	}
	if h.tools.next != len(h.tools.calls) {
		t.Errorf("%d of %d tool calls were made", h.tools.next, len(h.tools.calls))
	}
}

// differ returns the first difference of two histories in what was said: roles,
// texts, calls and results.
func differ(got, want []convo.Message) error {
	for i := range min(len(got), len(want)) {
		g, w := got[i], want[i]
		g.ID, w.ID = "", ""
		if !g.Equal(w) {
			a, _ := json.Marshal(g)
			b, _ := json.Marshal(w)
			return fmt.Errorf("message %d is\n%s\nexpected\n%s", i+1, a, b)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d messages, expected %d", len(got), len(want))
	}
	return nil
}

func TestRecordedConversationsReplayExactly(t *testing.T) {
	t.Parallel()
	messages, cut := 0, 0
	for i, r := range airline(t) {
		if testing.Short() && i%4 > 0 {
			continue
		}
		h := newReplayedTalk(t, r)
		h.replay(t, h.open(t, nil), nil)
		messages += len(r.messages) + 1
		if r.cutOff() || r.unanswered() {
			cut++
			if r.cutOff() && r.mostSteps >= r.lastSteps {
				t.Errorf("%s: an earlier turn had as many steps as the one that was cut off", r.id)
			}
		}
	}
	if !testing.Short() && (messages != 3136 || cut != 3) {
		t.Errorf("%d messages, expected 3136; %d conversations were cut off, expected 3", messages, cut)
	}
}

func TestRecordedConversationsSurviveRestartBeforeEveryTurn(t *testing.T) {
	t.Parallel()
	all := airline(t)
	if testing.Short() {
		all = all[:4]
	}
	path := filepath.Join(t.TempDir(), "weir.db")
	for i, r := range all {
		h := newReplayedTalk(t, r)
		if i%10 != 0 { // a new Weir and a new lease every turn, the file kept open
			s := openFile(t, path)
			h.replay(t, h.open(t, unclosedStore{s}), func(w *weir.Weir) *weir.Weir {
				closeWeir(t, w)
				return h.open(t, unclosedStore{s})
			})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		h.replay(t, h.open(t, openFile(t, path)), func(w *weir.Weir) *weir.Weir {
			closeWeir(t, w)
			return h.open(t, openFile(t, path))
		})
	}
}

func openFile(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(tb.Context(), path, sqlite.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
