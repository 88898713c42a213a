package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server/servertest"
)

// lookUp calls the function look_up for each word after "Look", and then says what came of it.
func lookUp(r *llmtest.Request) llmtest.Turn {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == convo.Tool {
		var found []string
		for i := len(r.Messages) - 1; r.Messages[i].Role == convo.Tool; i-- {
			found = append([]string{r.Messages[i].Text}, found...)
		}
		return llmtest.Turn{Text: "Found " + strings.Join(found, ", ")}
	}
	words := strings.Fields(last.Text)
	if len(r.Tools) == 0 || words[0] != "Look" {
		return servertest.Repeat(r)
	}
	var t llmtest.Turn
	for i, w := range words[1:] {
		t.Calls = append(t.Calls, convo.Call{ID: fmt.Sprint("c", i), Name: "look_up", Arguments: fmt.Sprintf(`{"berth":%q}`, w)})
	}
	return t
}

// functionFlows are flows whose model calls functions.
func functionFlows() map[string]string {
	out := map[string]string{}
	for name, kind := range map[string]string{"talk": "llmRequest", "work": "agent"} {
		out[name+".yaml"] = `weir: 1
name: ` + name + `
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: ` + kind + `, in: {message: "{{ run.inputs.message }}"}}
`
	}
	return out
}

func TestTheOfficialClientAnswersCallsOfItsFunctions(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{Answer: lookUp, Flows: functionFlows()})
	out := servertest.Node(t, "testdata/functions.mjs", user(p, "bob"), client)
	if !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}
