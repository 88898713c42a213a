package token

import (
	"testing"

	"github.com/weir-run/weir/convo"
)

// TestAMessageCostsMoreThanItsText pins what each vendor adds: without it, a history of many
// short messages is counted far too low.
func TestAMessageCostsMoreThanItsText(t *testing.T) {
	t.Parallel()
	call := convo.Call{ID: "toolu_1", Name: "look", Arguments: `{"q":"weir"}`}
	for vendor, want := range map[string]struct{ message, call int }{
		"openai":    {4, 3},
		"anthropic": {4, 12},
		"gemini":    {4, 8},
	} {
		c, err := NewCounter("", vendor)
		if err != nil {
			t.Fatal(err)
		}
		plain := convo.Message{Role: convo.User, Text: "Well?"}
		if got := c.Message(plain) - c.Text("Well?"); got != want.message {
			t.Errorf("%s: %d tokens around a message, want %d", vendor, got, want.message)
		}
		if got := c.System("Be brief.") - c.Text("Be brief."); got != want.message {
			t.Errorf("%s: %d tokens around a system prompt, want %d", vendor, got, want.message)
		}
		content := c.Text(call.Name) + c.Text(call.Arguments)
		if vendor == "anthropic" {
			content += c.Text(call.ID)
		}
		one := convo.Message{Role: convo.Assistant, Calls: []convo.Call{call}}
		if got := c.Message(one) - want.message - content; got != want.call {
			t.Errorf("%s: %d tokens around a call, want %d", vendor, got, want.call)
		}
		result := convo.Message{Role: convo.Tool, CallID: call.ID, Name: call.Name, Text: "ok"}
		if got := c.Message(result) - c.Text("ok") - c.Text(call.ID) - c.Text(call.Name); got != want.message+1 {
			t.Errorf("%s: %d tokens around a result, want %d", vendor, got, want.message+1)
		}
	}
}
