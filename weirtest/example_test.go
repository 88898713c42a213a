package weirtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/weirtest"
)

// printer is the *testing.T of this example, which has none.
type printer struct{ testing.TB }

func (printer) Helper()                  {}
func (printer) Cleanup(f func())         {}
func (printer) Context() context.Context { return context.Background() }
func (printer) Fatal(args ...any)        { panic(fmt.Sprint(args...)) }
func (printer) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// Tests of one node and of one flow. The model is scripted, and answers of people are given.
func Example() {
	t := printer{} // in a test: func TestReply(t *testing.T)

	type in struct{ Word string }
	type out struct{ Loud string }
	shout := weir.Func("shout", func(_ weir.Ctx, i in) (out, error) { return out{strings.ToUpper(i.Word) + "!"}, nil })
	node := weirtest.Node(t, shout, weirtest.Case{In: map[string]any{"word": "hello"}})
	fmt.Println(weirtest.Output[string](t, node, "loud"))

	flow := weirtest.Flow(t, `{weir: 1, name: reply, context: {model: any/model}, nodes: {
		ask: {type: userInput, with: {prompt: "You:"}}, say: {type: llmRequest, in: {message: "{{ ask.text }}"}}},
		outputs: {text: "{{ say.text }}"}}`, weirtest.Case{
		Answers: map[string]any{"ask": "What is a weir?"},
		Script:  weirtest.Says("A low dam."),
	})
	fmt.Println(flow.Status, weirtest.Output[string](t, flow, "text"))
	fmt.Println(flow.Requests[0].Messages[0].Text)
	// Output:
	// HELLO!
	// completed A low dam.
	// What is a weir?
}
