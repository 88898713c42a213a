package llm_test

import (
	"bufio"
	"context"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/tool"
)

// replayed is an attempt whose tools answer as they did in a conversation, one
// call after another: ids of calls come more than once in some.
type replayed struct {
	*attempt
	results []string
}

func (r *replayed) ToolCall(int, *tool.Tool, convo.Call) (llm.ToolResult, error) {
	text := r.results[0]
	r.results = r.results[1:]
	return llm.ToolResult{Text: text}, nil
}

// TestRecordedConversationsReplay says what the customers said and lets
// the service do the rest; the histories must be the recorded ones.
func TestRecordedConversationsReplay(t *testing.T) {
	t.Parallel()
	p, err := recorded.FromConversations(bufio.NewReader(shareddata.Open(t, shareddata.Airline)))
	if err != nil {
		t.Fatal(err)
	}
	s := llm.NewService(llm.Options{Replay: p})
	cut := 0
	for _, c := range p.Conversations() {
		m := holdAgain(t, s, c)
		want := c.Messages[1:]
		if wasCutOff(c) {
			// The last turn has no answer; what the customer said is left of it.
			cut++
			for want[len(want)-1].Role != convo.User {
				want = want[:len(want)-1]
			}
		}
		if got := lines(messagesOf(t, m)); len(got) != len(want) {
			t.Fatalf("%s: %d messages, want %d", c.ID, len(got), len(want))
		}
		for i, msg := range messagesOf(t, m) {
			msg.ID = ""
			if !msg.Equal(want[i]) {
				t.Fatalf("%s, message %d: got %+v, want %+v", c.ID, i+2, msg, want[i])
			}
		}
	}
	if cut != 2 {
		t.Errorf("%d conversations were cut off, expected 2", cut)
	}
}

// wasCutOff reports whether a recording stops after a tool's result though the
// tool does not end the conversation.
func wasCutOff(c recorded.Conversation) bool {
	last := c.Messages[len(c.Messages)-1]
	return last.Role == convo.Tool && last.Name != handOver
}

func holdAgain(t *testing.T, s *llm.Service, c recorded.Conversation) *convo.Manager {
	t.Helper()
	h := &replayed{attempt: newAttempt(t.Context())}
	var tools []*tool.Tool
	for _, m := range c.Messages {
		if m.Role == convo.Tool {
			h.results = append(h.results, m.Text)
			tools = append(tools, &tool.Tool{Name: m.Name, Call: noCall, EndsTurn: m.Name == handOver})
		}
	}
	m := convo.NewManager(convo.Context{ID: "main", Settings: convo.Settings{System: c.Messages[0].Text}}, true)
	for i, msg := range c.Messages {
		switch {
		case msg.Role != convo.User:
		case i+1 == len(c.Messages): // the customer has the last word
			if _, err := m.Add(msg); err != nil {
				t.Fatal(err)
			}
		default:
			_, err := s.Turn(t.Context(), h, llm.Turn{Context: m, Message: &msg, Tools: tools, MaxSteps: 40})
			switch {
			case err != nil && wasCutOff(c) && len(h.results) == 0:
				wantCode(t, err, "replay_divergence")
			case err != nil:
				t.Fatalf("%s, message %d: %v", c.ID, i+1, err)
			}
		}
	}
	return m
}

// handOver is the tool that ended a conversation in the recordings.
const handOver = "transfer_to_human_agents"

func noCall(context.Context, tool.Call) (string, error) { return "", nil }
