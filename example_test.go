package weir_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node"
)

// A flow of one node, which is a Go function.
func Example() {
	const hello = `{weir: 1, name: hello, inputs: {name: {type: text}}, outputs: {line: "{{ greet.greeting }}"},
	  nodes: {greet: {type: greet, in: {name: "{{ run.inputs.name }}"}}}}`

	type in struct{ Name string }
	type out struct{ Greeting string }
	greet := func(_ weir.Ctx, i in) (out, error) { return out{"Hello, " + i.Name + "."}, nil }

	ctx := context.Background()
	w, err := weir.Open(weir.Options{Types: []weir.Type{weir.Func("greet", greet)}})
	if err != nil {
		panic(err)
	}
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f, err := w.Parse("hello.yaml", []byte(hello))
	if err != nil {
		panic(err)
	}
	run, err := w.Start(ctx, f, weir.Start{Inputs: map[string]any{"name": "Ada"}})
	if err != nil {
		panic(err)
	}
	result, err := run.Wait(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(weir.Output[string](result, "line"))
	// Output: Hello, Ada. <nil>
}

// A run that waits for a person, in Go: wait, look at the question, answer,
// wait again.
func ExampleRun_Answer() {
	ctx := context.Background()
	w, err := weir.Open(weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("A low dam.")}})
	if err != nil {
		panic(err)
	}
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f, err := w.Define(weir.Definition{
		Name:    "chat",
		Context: map[string]any{"model": "script/demo"},
		Nodes: map[string]weir.NodeSpec{
			"ask":   {Type: "userInput", With: map[string]any{"prompt": "You:"}},
			"reply": {Type: "llmRequest", In: map[string]any{"message": "{{ ask.text }}"}},
		},
		Outputs: map[string]any{"reply": "{{ reply.text }}"},
	})
	if err != nil {
		panic(err)
	}
	run, err := w.Start(ctx, f, weir.Start{})
	if err != nil {
		panic(err)
	}
	r, err := run.Wait(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Status, r.Interrupts[0].ID, r.Interrupts[0].Prompt)
	if err := run.Answer(ctx, r.Interrupts[0].ID, "What is a weir?"); err != nil {
		panic(err)
	}
	if r, err = run.Wait(ctx); err != nil {
		panic(err)
	}
	fmt.Println(r.Status, r.Outputs.Map()["reply"])
	// Output:
	// paused ask:ask#1 You:
	// completed A low dam.
}

// A node with inputs, outputs and settings, which uses the state, says
// something in its context and does one thing outside.
func ExampleFuncWith() {
	// node:begin
	type in struct {
		Amount float64 `doc:"What is to be paid, in EUR."`
		Note   string  `weir:"note,optional"`
	}
	type out struct{ Receipt string }
	type settings struct {
		Account string `doc:"Where the money goes."`
	}
	pay := weir.FuncWith("pay", func(ctx weir.Ctx, i in, s settings) (out, error) {
		receipt, err := ctx.Do(node.Effect{
			Name: "pay", Request: []any{s.Account, i.Amount}, Unknown: node.UnknownAsk,
			Do: func(_ context.Context, key string) (node.Outcome, error) {
				// The bank is called here, with key as the idempotency key.
				return node.Outcome{Value: fmt.Sprintf("%.2f EUR to %s", i.Amount, s.Account)}, nil
			},
		})
		if err != nil {
			return out{}, err
		}
		talk, err := ctx.Context()
		if err != nil {
			return out{}, err
		}
		if _, err := talk.Add(convo.Message{Role: convo.Assistant, Text: "Paid " + receipt.(string)}); err != nil {
			return out{}, err
		}
		return out{receipt.(string)}, ctx.State().Set("paid", i.Amount)
	}).WritesContext().Doc("Pays a sum.", "")
	// node:end

	for _, p := range pay.Spec().Ports.In {
		fmt.Println(strings.TrimSpace(fmt.Sprintln(p.Name, p.Type, p.Required, p.Description)))
	}
	// Output:
	// amount number true What is to be paid, in EUR.
	// note text false
	// context context false The conversation to use.
}

func TestNodeDocsShowTheExample(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("docs", "custom-nodes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "\t// node:begin\n")
	code, _, _ = strings.Cut(code, "\t// node:end")
	var want strings.Builder
	for line := range strings.Lines(code) {
		want.WriteString(strings.TrimPrefix(line, "\t"))
	}
	_, got, _ := strings.Cut(string(page), "```go\n")
	got, _, _ = strings.Cut(got, "```")
	if got != want.String() || got == "" {
		t.Errorf("the page shows\n%s\nthe example is\n%s", got, want.String())
	}
}

// A session: each message is a round that sees the earlier ones. Items streams text while
// the model answers.
func ExampleWeir_Session() {
	const chat = `{weir: 1, name: chat, context: {model: script/demo}, inputs: {message: {type: text, required: true}},
	  nodes: {answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}}, outputs: {text: "{{ answer.text }}"}}`

	ctx := context.Background()
	w, err := weir.Open(weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("A low dam.", "Water.")}})
	if err != nil {
		panic(err)
	}
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f, err := w.Parse("chat.yaml", []byte(chat))
	if err != nil {
		panic(err)
	}
	s, err := w.Session(ctx, f, weir.SessionOptions{User: "ada"})
	if err != nil {
		panic(err)
	}
	for _, question := range []string{"What is a weir?", "What does it control?"} {
		reply, err := s.Send(ctx, question, weir.SendOptions{})
		if err != nil {
			panic(err)
		}
		for item, err := range reply.Items(ctx) {
			if err != nil {
				panic(err)
			}
			if item.Chunk != nil {
				fmt.Fprint(os.Stderr, item.Chunk.Text) // as it arrives
			}
		}
		state, err := reply.Wait(ctx)
		if err != nil {
			panic(err)
		}
		fmt.Printf("round %d: %s\n", state.Round, state.Text)
	}
	// Output:
	// round 1: A low dam.
	// round 2: Water.
}
