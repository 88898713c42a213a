package weirkit

import (
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/weirtest"
)

// MessageLines returns messages as "role: text".
func MessageLines(ms []convo.Message) []string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = string(m.Role) + ": " + m.Text
	}
	return out
}

// CheckLines checks messages against their lines; what names them in the error.
func CheckLines(t *testing.T, what string, got []convo.Message, want ...string) {
	t.Helper()
	if g := MessageLines(got); !slices.Equal(g, want) {
		t.Errorf("%s is\n%q\nexpected\n%q", what, g, want)
	}
}

// MessagesIn returns the messages of one context of a run.
func MessagesIn(t *testing.T, r weirtest.Result, id string) []convo.Message {
	t.Helper()
	c, ok := r.Contexts[id]
	if !ok {
		t.Fatalf("there is no context %q", id)
	}
	ms, err := c.Messages()
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// CheckStatus fails the test if the run has another status.
func CheckStatus(t *testing.T, r weirtest.Result, s weir.Status) {
	t.Helper()
	if r.Status != s {
		t.Fatalf("the run is %s: %v", r.Status, r.Error)
	}
}
