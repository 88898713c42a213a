package weir_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/tool"
)

// must returns v. An error ends the example.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Events streams what happens in a run, with the text of models as it arrives.
func ExampleRun_Events() {
	ctx := context.Background()
	w := must(weir.Open(weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("A low dam.")}}))
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f := must(w.Parse("ask.yaml", []byte(`{weir: 1, name: ask, context: {model: script/demo},
		nodes: {answer: {type: llmRequest, in: {message: "What is a weir?"}}}, outputs: {text: "{{ answer.text }}"}}`)))
	run := must(w.Start(ctx, f, weir.Start{}))
	var streamed strings.Builder
	for item, err := range run.Events(ctx) {
		switch {
		case err != nil:
			panic(err)
		case item.Event != nil:
			fmt.Println(item.Event.Kind())
		case item.Gap || item.Retracted:
			streamed.Reset() // what was shown so far is void
		case item.Chunk != nil:
			streamed.WriteString(item.Chunk.Text)
		}
	}
	result := must(run.Wait(ctx))
	fmt.Println(result.Status, strings.HasPrefix("A low dam.", streamed.String()), result.Outputs.Map()["text"])
	// Output:
	// run.started
	// node.started
	// effect.completed
	// node.completed
	// run.completed
	// completed true A low dam.
}

// A Go function that a model can call. Nodes name the tools that their model may use.
func ExampleTool() {
	ctx := context.Background()
	type in struct {
		City string `doc:"The city." json:"city"`
	}
	weather := must(tool.FromFunc("weather", "Tells the weather of a city.", func(_ context.Context, i in) (string, error) {
		return "sunny in " + i.City, nil
	}))
	weather.ReadOnly = true // it is called again if its result was lost
	model := recorded.NewScriptedTurns([]recorded.Turn{
		{Message: convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "1", Name: "weather", Arguments: `{"city": "Lyon"}`}}}},
		{Message: convo.Message{Role: convo.Assistant, Text: "Take no umbrella."}},
	}, nil)
	w := must(weir.Open(weir.Options{Tools: []*weir.Tool{weather}, Providers: map[string]weir.Provider{"script": model}}))
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f := must(w.Parse("trip.yaml", []byte(`{weir: 1, name: trip, context: {model: script/demo},
		nodes: {ask: {type: llmRequest, in: {message: "Do I need an umbrella in Lyon?", tools: [weather]}}}, outputs: {text: "{{ ask.text }}"}}`)))
	run := must(w.Start(ctx, f, weir.Start{}))
	result := must(run.Wait(ctx))
	fmt.Println(result.Status, result.Outputs.Map()["text"])
	for _, m := range must(w.Inspect(ctx, run.ID, 0)).Contexts["main"].History.All() {
		if m.Role == convo.Tool {
			fmt.Println("the tool returned:", m.Text)
		}
	}
	// Output:
	// completed Take no umbrella.
	// the tool returned: sunny in Lyon
}

// echo is a provider whose model repeats the last message.
type echo struct{}

// Generate implements weir.Provider.
func (echo) Generate(_ context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	text := r.Model + " says: " + r.Messages[len(r.Messages)-1].Text
	emit(llm.Chunk{Text: text}) // a real provider emits pieces as they arrive
	return &llm.Response{
		Message: convo.Message{Role: convo.Assistant, Text: text}, Stop: "end",
		Usage: llm.Usage{Input: 10, Output: 5},
	}, nil
}

// A provider calls the models of one vendor. Flows name its models by the name under which
// Options has it: "echo/loud".
func ExampleProvider() {
	ctx := context.Background()
	w := must(weir.Open(weir.Options{Providers: map[string]weir.Provider{"echo": echo{}}}))
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f := must(w.Define(weir.Definition{
		Name:    "echo",
		Context: map[string]any{"model": "echo/loud"},
		Nodes:   map[string]weir.NodeSpec{"say": {Type: "llmRequest", In: map[string]any{"message": "Hello."}}},
		Outputs: map[string]any{"text": "{{ say.text }}"},
	}))
	result := must(must(w.Start(ctx, f, weir.Start{})).Wait(ctx))
	fmt.Println(result.Outputs.Map()["text"], result.Usage.Input, result.Usage.Output)
	// Output: loud says: Hello. 10 5
}

// A budget limits what a run may spend. A run that needs more fails before the call that
// would exceed it, and continues when a person increases the budget.
func ExampleRun_IncreaseBudget() {
	ctx := context.Background()
	w := must(weir.Open(weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("A draft.", "A better one.")}}))
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f := must(w.Parse("drafts.yaml", []byte(`{weir: 1, name: drafts, context: {model: script/demo}, budget: {maxCalls: 1},
		nodes: {draft: {type: llmRequest, in: {message: "Write."}}, better: {type: llmRequest, after: draft, in: {message: "Improve it."}}},
		outputs: {text: "{{ better.text }}"}}`)))
	run := must(w.Start(ctx, f, weir.Start{}))
	result := must(run.Wait(ctx))
	fmt.Println(result.Status, result.Error.Code, result.Error.Node)
	if err := run.IncreaseBudget(ctx, result.Error.Node, map[string]any{"maxCalls": 1}); err != nil {
		panic(err)
	}
	result = must(run.Wait(ctx))
	fmt.Println(result.Status, result.Outputs.Map()["text"], result.Usage.Calls)
	// Output:
	// failed budget_exceeded better
	// completed A better one. 2
}

// A recorder keeps the model calls of a run in a file. Replay answers from it without a
// model, and refuses a request that differs.
func ExampleOptions_replay() {
	ctx := context.Background()
	const question = `{weir: 1, name: ask, context: {model: script/demo}, inputs: {about: {type: text}},
		nodes: {answer: {type: llmRequest, in: {message: "What is {{ run.inputs.about }}?"}}}, outputs: {text: "{{ answer.text }}"}}`
	ask := func(o weir.Options, about string) {
		w := must(weir.Open(o))
		defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
		f := must(w.Parse("ask.yaml", []byte(question)))
		result := must(must(w.Start(ctx, f, weir.Start{Inputs: map[string]any{"about": about}})).Wait(ctx))
		if result.Error != nil {
			fmt.Println(result.Status, result.Error.Code)
			return
		}
		fmt.Println(result.Status, result.Outputs.Map()["text"])
	}
	dir := must(os.MkdirTemp("", "weir-example-*"))
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	file := filepath.Join(dir, "calls.jsonl")
	recorder := must(recorded.NewFileRecorder(file))
	ask(weir.Options{Providers: map[string]weir.Provider{"script": recorder.Wrap(recorded.NewScripted("A low dam."))}}, "a weir")
	if err := recorder.Close(); err != nil {
		panic(err)
	}

	replay := must(recorded.Open(file))
	ask(weir.Options{Replay: replay}, "a weir")
	ask(weir.Options{Replay: replay}, "a lock")
	// Output:
	// completed A low dam.
	// completed A low dam.
	// failed replay_divergence
}

// A fork shares the past of a run up to a node and continues with other inputs. The run
// itself does not change, and no effect of the shared past runs again.
func ExampleWeir_Fork() {
	ctx := context.Background()
	w := must(weir.Open(weir.Options{Providers: map[string]weir.Provider{"script": recorded.NewScripted("A low dam.")}}))
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f := must(w.Parse("fork.yaml", []byte(`{weir: 1, name: fork, context: {model: script/demo}, inputs: {tone: {type: text}},
		nodes: {fact: {type: llmRequest, in: {message: "What is a weir?"}},
		  line: {type: transform, in: {fact: "{{ fact.text }}"}, with: {expr: "run.inputs.tone + ': ' + inputs.fact"}}},
		outputs: {line: "{{ line.value }}"}}`)))
	run := must(w.Start(ctx, f, weir.Start{Inputs: map[string]any{"tone": "plain"}}))
	fmt.Println(must(run.Wait(ctx)).Outputs.Map()["line"])

	fork, plan, err := w.Fork(ctx, run.ID, weir.ForkOptions{Inputs: map[string]any{"tone": "grand"}})
	if err != nil {
		panic(err)
	}
	for _, n := range plan.Nodes {
		fmt.Println(n.Path, n.Reuse)
	}
	result := must(fork.Wait(ctx))
	fmt.Println(result.Outputs.Map()["line"], result.Usage.Calls)
	// Output:
	// plain: A low dam.
	// fact reused
	// line again
	// grand: A low dam. 0
}
