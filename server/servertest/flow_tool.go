package servertest

import (
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm/llmtest"
)

// AskingTool returns options of a server with the flow desk. Its model calls the flow book, which asks a person, once for each word
// of the message, all in one answer. At the end it says what the calls returned.
func AskingTool() Options {
	return Options{
		Config: "tools: {flows: [{name: book, file: flows/book.yaml}]}\n",
		Flows: map[string]string{
			"desk.yaml": `weir: 1
name: desk
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
nodes:
  work: {type: agent, in: {message: "{{ run.inputs.message }}", tools: [book]}}
outputs: {answer: "{{ work.text }}"}
`,
			"book.yaml": `weir: 1
name: book
inputs: {train: {type: text, required: true}}
nodes:
  who: {type: userInput, with: {prompt: "Who takes {{ run.inputs.train }}?"}}
outputs: {ticket: "{{ who.text }} in {{ run.inputs.train }}"}
`,
		},
		Answer: func(r *llmtest.Request) llmtest.Turn {
			var tickets []string
			for i := len(r.Messages) - 1; r.Messages[i].Role == convo.Tool; i-- {
				tickets = append([]string{r.Messages[i].Text}, tickets...)
			}
			if tickets != nil {
				return llmtest.Turn{Text: "Booked: " + strings.Join(tickets, ", ")}
			}
			var t llmtest.Turn
			for i, train := range strings.Fields(r.Messages[len(r.Messages)-1].Text) {
				t.Calls = append(t.Calls, convo.Call{ID: "c" + itoa(i), Name: "book", Arguments: `{"train":"` + train + `"}`})
			}
			return t
		},
	}
}
