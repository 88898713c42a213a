package openai_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
)

// recorded is a conversation of the airline data, its messages in Weir's words.
type recorded struct {
	ID       string
	Messages []convo.Message
	Tools    []llm.Tool
}

// conversations reads the recorded conversations, or skips.
func conversations(t *testing.T) []recorded {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "airline", "conversations.jsonl"))
	if err != nil {
		t.Skipf("the recorded conversations are not here: %v", err)
	}
	defer func() { _ = file.Close() }()
	var all []recorded
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			ID       string
			Messages []struct {
				Role, Content, Name string
				CallID              string `json:"tool_call_id"`
				ToolCalls           []struct {
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		r := recorded{ID: line.ID}
		tools := map[string]bool{}
		for _, m := range line.Messages {
			out := convo.Message{Role: convo.Role(m.Role), Text: m.Content, CallID: m.CallID, Name: m.Name}
			for _, c := range m.ToolCalls {
				out.Calls = append(out.Calls, convo.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
				if !tools[c.Function.Name] {
					tools[c.Function.Name] = true
					r.Tools = append(r.Tools, llm.Tool{Name: c.Function.Name})
				}
			}
			r.Messages = append(r.Messages, out)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRecordedConversationsAreHadAgain replays about every fourth turn of real
// conversations against the strict server: each request is valid, holds the
// history as it was, and is answered with the recorded turn. The data hold 38
// calls with the id of an earlier call, which the Responses API must not see
// twice.
func TestRecordedConversationsAreHadAgain(t *testing.T) {
	t.Parallel()
	for _, api := range []string{openai.Chat, openai.Responses} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			turns := 0
			for _, r := range conversations(t) {
				turns += replay(t, api, r)
			}
			t.Logf("%d model turns", turns)
		})
	}
}

func replay(t *testing.T, api string, r recorded) int {
	t.Helper()
	s := llmtest.Start()
	defer s.Close()
	p := openai.New(openai.Options{BaseURL: s.URL, API: api})
	turns := 0
	for n, m := range r.Messages {
		if m.Role != convo.Assistant || (len(r.Messages)-n)/2%4 != 0 {
			continue
		}
		s.Script(llmtest.Turn{Text: m.Text, Calls: m.Calls, Piece: 200})
		res, err := p.Generate(t.Context(), &llm.Request{
			Model: "gpt-4o", System: r.Messages[0].Text, Messages: r.Messages[1:n], Tools: r.Tools,
		}, nil)
		if err != nil {
			t.Fatalf("%s, message %d: %v", r.ID, n, err)
		}
		if res.Message.Text != m.Text || !reflect.DeepEqual(res.Message.Calls, m.Calls) {
			t.Fatalf("%s, message %d is %+v, want %+v", r.ID, n, res.Message, m)
		}
		// What the next request holds is what the model said, native and all.
		r.Messages[n].Native, r.Messages[n].Provider = res.Message.Native, res.Message.Provider
		turns++
		wantHistory(t, r, s.Last().Messages, n)
	}
	return turns
}

func wantHistory(t *testing.T, r recorded, got []convo.Message, n int) {
	t.Helper()
	if len(got) != n {
		t.Fatalf("%s: the server got %d messages before message %d", r.ID, len(got), n)
	}
	for i, g := range got {
		w := r.Messages[i]
		if g.Role != w.Role || g.Text != w.Text || len(g.Calls) != len(w.Calls) {
			t.Fatalf("%s: message %d arrived as %+v, want %+v", r.ID, i, g, w)
		}
		for k, c := range g.Calls {
			if c.Name != w.Calls[k].Name || c.Arguments != w.Calls[k].Arguments {
				t.Fatalf("%s: message %d has the call %+v, want %+v", r.ID, i, c, w.Calls[k])
			}
		}
		// One call at a time: the message before a result is its call's.
		if g.Role == convo.Tool && g.CallID != got[i-1].Calls[0].ID {
			t.Fatalf("%s: message %d arrived as %+v, want %+v", r.ID, i, g, w)
		}
	}
}
