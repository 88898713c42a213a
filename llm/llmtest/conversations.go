package llmtest

import (
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
)

// Conversation is a recorded conversation, the system message first, with the names of the tools that are called in
// it.
type Conversation struct {
	ID       string
	Messages []convo.Message
	Tools    []llm.Tool
}

// Conversations reads the airline conversations of the shared data, one in eight of them in short tests; see
// shareddata.Open. The caller owns the result.
func Conversations(tb testing.TB) []Conversation {
	tb.Helper()
	every := 1
	if testing.Short() {
		every = 8
	}
	read, err := recorded.FromConversations(shareddata.Open(tb, shareddata.Airline))
	if err != nil {
		tb.Fatal(err)
	}
	var all []Conversation
	for i, c := range read.Conversations() {
		if i%every == 0 {
			all = append(all, Conversation{c.ID, c.Messages, called(c.Messages)})
		}
	}
	return all
}

func called(messages []convo.Message) []llm.Tool {
	var tools []llm.Tool
	known := map[string]bool{}
	for _, m := range messages {
		for _, c := range m.Calls {
			if !known[c.Name] {
				known[c.Name] = true
				tools = append(tools, llm.Tool{Name: c.Name})
			}
		}
	}
	return tools
}
