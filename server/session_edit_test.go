package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

const limitedFlow = `
weir: 1
name: limited
context: {model: script/answers.yaml}
session: {budget: {maxCalls: 1}}
inputs: {message: {type: message, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {text: "{{ answer.text }}"}
`

// openLimited serves a flow whose sessions have a budget of one model call.
func openLimited(t *testing.T, dir string) *process {
	t.Helper()
	for name, text := range map[string]string{"limited.yaml": limitedFlow, "answers.yaml": "answer: [First., Second., Third.]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openProcess(t, dir, server.Options{})
}

func TestAMessageIsEditedAndAnsweredAgainInOneRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openLimited(t, dir)
	ada, eve := p.anyone("ada"), p.anyone("eve")
	id, err := ada.OpenSession(t.Context(), "limited", "")
	if err != nil {
		t.Fatal(err)
	}
	if sent, err := ada.Send(t.Context(), id, client.Message{Text: "one", Wait: 60}); err != nil || sent.Text != "First." {
		t.Fatal(sent, err)
	}
	made := map[string]bool{id: true}
	for name, do := range map[string]func(c *client.Client, key string) (*client.Sent, error){
		"edit": func(c *client.Client, key string) (*client.Sent, error) {
			return c.Edit(t.Context(), id, 0, client.Message{Text: "two", Key: key, Wait: 60})
		},
		"regenerate": func(c *client.Client, key string) (*client.Sent, error) {
			return c.Regenerate(t.Context(), id, 0, client.Message{Key: key, Wait: 60})
		},
	} {
		first, err := do(ada, "k-"+name)
		if err != nil || first.Status != "completed" || first.Text != "First." || made[first.Session] {
			t.Fatalf("%s: %+v, %v", name, first, err)
		}
		made[first.Session] = true
		again, err := do(ada, "k-"+name)
		if err != nil || again.Session != first.Session || again.Run != first.Run || again.Message != first.Message {
			t.Errorf("%s, sent again: %+v, not %+v: %v", name, again, first, err)
		}
		var refused *client.Error
		if _, err := do(eve, ""); !errors.As(err, &refused) || refused.Status != 404 {
			t.Errorf("%s by another user: %v", name, err)
		}
	}
	if got := sessionsOf(t, ada); got != len(made) {
		t.Errorf("there are %d sessions, want %d", got, len(made))
	}
	for _, position := range []int{1, 7} { // an answer, and nothing
		var refused *client.Error
		if _, err := ada.Edit(t.Context(), id, position, client.Message{Text: "x"}); !errors.As(err, &refused) || refused.Status != 422 {
			t.Errorf("edit of %d: %v", position, err)
		}
	}
	if got := sessionsOf(t, ada); got != len(made) {
		t.Errorf("after refusals there are %d sessions, want %d", got, len(made))
	}
}

func sessionsOf(t *testing.T, c *client.Client) int {
	t.Helper()
	var list struct {
		Sessions []struct{} `json:"sessions"`
	}
	if err := c.Do(t.Context(), "GET", "/v1/sessions", nil, &list); err != nil {
		t.Fatal(err)
	}
	return len(list.Sessions)
}

func TestTheBudgetOfASessionIsIncreasedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openLimited(t, dir)
	ada, eve := p.anyone("ada"), p.anyone("eve")
	id, err := ada.OpenSession(t.Context(), "limited", "")
	if err != nil {
		t.Fatal(err)
	}
	say := func() string {
		t.Helper()
		sent, err := ada.Send(t.Context(), id, client.Message{Text: "hi", Wait: 60})
		if err != nil {
			t.Fatal(err)
		}
		return sent.Status
	}
	if got := say(); got != "completed" {
		t.Fatalf("the first round is %s", got)
	}
	if got := say(); got != "failed" {
		t.Errorf("a round without budget is %s", got)
	}
	for range 2 { // the same request
		b, err := ada.IncreaseSessionBudget(t.Context(), id, client.BudgetIncrease{Calls: 1}, "more")
		if err != nil || b.MaxCalls != 2 || b.Increase.Calls != 1 || b.UsedCalls != 1 {
			t.Errorf("the budget is %+v, %v", b, err)
		}
	}
	if got := say(); got != "completed" {
		t.Errorf("a round with the increase is %s", got)
	}
	p.close()
	p = openProcess(t, dir, server.Options{})
	ada, eve = p.anyone("ada"), p.anyone("eve")
	if b, err := ada.SessionBudget(t.Context(), id); err != nil || b.MaxCalls != 2 || b.UsedCalls != 2 {
		t.Errorf("after a restart the budget is %+v, %v", b, err)
	}
	for name, do := range map[string]func() error{
		"read": func() error { _, err := eve.SessionBudget(t.Context(), id); return err },
		"increase": func() error {
			_, err := eve.IncreaseSessionBudget(t.Context(), id, client.BudgetIncrease{Calls: 1}, "")
			return err
		},
	} {
		var refused *client.Error
		if err := do(); !errors.As(err, &refused) || refused.Status != 404 {
			t.Errorf("%s by another user: %v", name, err)
		}
	}
	for name, more := range map[string]client.BudgetIncrease{"nothing": {}, "what the flow does not limit": {Tokens: 5}} {
		var refused *client.Error
		if _, err := ada.IncreaseSessionBudget(t.Context(), id, more, ""); !errors.As(err, &refused) || refused.Status/100 != 4 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
