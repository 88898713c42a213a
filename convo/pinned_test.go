package convo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
)

func TestPinnedResultIsNotCleared(t *testing.T) {
	t.Parallel()
	c := convo.Context{ID: "c"}
	for i := range 30 {
		id := fmt.Sprint("call", i)
		c.History = c.History.Append(
			convo.Message{Role: convo.User, Text: "look"},
			convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: id, Name: "look", Arguments: "{}"}}},
			convo.Message{Role: convo.Tool, CallID: id, Name: "look", Text: fmt.Sprint(i, strings.Repeat(" seen", 40)), Pinned: i == 3})
	}
	v, err := c.View(convo.ViewSpec{Room: 600, Count: wordCounter{}})
	if err != nil {
		t.Fatal(err)
	}
	if v.Marks.Cleared == 0 || v.Marks.Cut == 0 {
		t.Fatalf("marks %+v", v.Marks)
	}
	for _, m := range v.Messages {
		if m.CallID == "call3" {
			if !strings.HasPrefix(m.Text, "3 seen") {
				t.Errorf("the pinned result reads %q", m.Text)
			}
			return
		}
	}
	t.Error("the pinned result is not shown")
}
