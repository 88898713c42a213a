package mcptool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/tool"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

func TestAServerThatRequiresInputIsCalledAgainWithTheAnswersAndItsState(t *testing.T) {
	t.Parallel()
	for kind, serve := range map[string]func(*testing.T) mcptool.Server{"stdio": stdio, "http": overStatelessHTTP} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			set := accepted(t, client(t, serve(t), lock(t)))
			_, err := call(t, set, "book", "{}")
			need, ok := errors.AsType[*tool.InputRequired](err)
			if !ok || len(need.Questions) != 2 || need.State != "12" {
				t.Fatalf("got %v", err)
			}
			name, seat := need.Questions[0], need.Questions[1]
			if name.Name != "name" || seat.Name != "seat" || name.Prompt != "Whose?" || strings.Contains(seat.Prompt, "key-to") || seat.Schema["type"] != "object" {
				t.Errorf("the questions are %+v", need.Questions)
			}
			text, err := set.Get("mcp:test/book").Run(t.Context(), tool.Call{Key: "k", Arguments: "{}", Input: &tool.Input{
				State:   need.State,
				Answers: map[string]tool.InputAnswer{"name": {Declined: true}, "seat": {Value: map[string]any{"row": int64(7)}}},
			}})
			if err != nil || text != "12 seat accept map[row:7], name decline map[]" {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

func TestAServerIsGivenNothingButForms(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{"visit": `"m" is no form`, "leak": "contains a secret"} {
		set := accepted(t, client(t, stdio(t), lock(t)))
		if _, err := call(t, set, name, "{}"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAServerThatAsksInTheMiddleOfACallIsRefused(t *testing.T) {
	t.Parallel()
	set := accepted(t, client(t, overHTTP(t), lock(t)))
	if _, err := call(t, set, "leak", "{}"); err == nil || !strings.Contains(err.Error(), "cannot ask a person in the middle of a call") {
		t.Errorf("got %v", err)
	}
}
