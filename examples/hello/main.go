// Command hello runs a flow of one node, which is a Go function.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/weir-run/weir"
)

const hello = `{weir: 1, name: hello, inputs: {name: {type: text}}, outputs: {line: "{{ greet.greeting }}"},
  nodes: {greet: {type: greet, in: {name: "{{ run.inputs.name }}"}}}}`

type (
	in  struct{ Name string }
	out struct{ Greeting string }
)

func greet(_ weir.Ctx, i in) (out, error) { return out{"Hello, " + i.Name + "."}, nil }

func run(ctx context.Context) (string, error) {
	w, err := weir.Open(weir.Options{Types: []weir.Type{weir.Func("greet", greet)}})
	if err != nil {
		return "", err
	}
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f, err := w.Parse("hello.yaml", []byte(hello))
	if err != nil {
		return "", err
	}
	r, err := w.Start(ctx, f, weir.Start{Inputs: map[string]any{"name": "Ada"}})
	if err != nil {
		return "", err
	}
	result, err := r.Wait(ctx)
	if err != nil {
		return "", err
	}
	return weir.Output[string](result, "line")
}

func main() {
	line, err := run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(line)
}
