package trajectorytest

import (
	"bufio"
	"encoding/json"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/trajectory"
)

// Conversation is a real conversation between a customer and an agent that calls tools.
type Conversation struct {
	ID       string
	Messages []convo.Message
	// Raw has the messages as they were published, for independent counts.
	Raw json.RawMessage
}

// Airline reads the 120 airline conversations of the shared data; see shareddata.Open.
func Airline(t *testing.T) []Conversation {
	t.Helper()
	f := shareddata.Open(t, shareddata.Airline)
	var out []Conversation
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var raw struct {
			ID       string
			Messages json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &raw); err != nil {
			t.Fatal(err)
		}
		out = append(out, Conversation{ID: raw.ID, Messages: chat(t, raw.Messages), Raw: raw.Messages})
	}
	if err := lines.Err(); err != nil || len(out) != 120 {
		t.Fatalf("there are %d conversations, %v", len(out), err)
	}
	return out
}

// chat reads messages in the format of OpenAI's Chat Completions.
func chat(t *testing.T, raw []byte) []convo.Message {
	t.Helper()
	var list []struct {
		Role, Content, Name string
		ToolCallID          string `json:"tool_call_id"`
		ToolCalls           []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	out := make([]convo.Message, len(list))
	for i, m := range list {
		out[i] = convo.Message{Role: convo.Role(m.Role), Text: m.Content, CallID: m.ToolCallID, Name: m.Name}
		for _, c := range m.ToolCalls {
			out[i].Calls = append(out[i].Calls, convo.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
	}
	return out
}

// Rounds splits messages before each user message; messages before the first one belong to the first round.
func Rounds(messages []convo.Message) [][]convo.Message {
	out := [][]convo.Message{nil}
	begun := false
	for _, m := range messages {
		if m.Role == convo.User && begun {
			out = append(out, nil)
		}
		begun = begun || m.Role == convo.User
		out[len(out)-1] = append(out[len(out)-1], m)
	}
	return out
}

// Record records a session of rounds of messages, each with a recorder of its own, as a process would; check is
// called with each recorder before its release.
func Record(t *testing.T, s trajectory.Storage, session string, messages []convo.Message, check func(*trajectory.Recorder)) {
	t.Helper()
	at := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	pool := trajectory.NewRecorderPool(s, nil)
	for i, said := range Rounds(messages) {
		k := trajectory.Key{User: "customer", Session: session, Round: i + 1}
		r, release, err := pool.Open(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.AddMessages(trajectory.MessageOptions{By: trajectory.Attribution{Run: k.String()}, At: at}, said...); err != nil {
			t.Fatal(err)
		}
		if check != nil {
			check(r)
		}
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
