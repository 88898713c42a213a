package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// A program that offers its own flows and node types over HTTP, and a client of it.
func Example() {
	ctx := context.Background()
	type in struct{ Name string }
	type out struct{ Greeting string }
	greet := weir.Func("greet", func(_ weir.Ctx, i in) (out, error) { return out{"Hello, " + i.Name + "."}, nil })
	db := memory.New()
	w, err := weir.Open(weir.Options{Store: db, Types: []weir.Type{greet}})
	if err != nil {
		panic(err)
	}
	defer w.Close(ctx) //nolint:errcheck // the record is in memory and gone
	f, err := w.Parse("hello.yaml", []byte(`{weir: 1, name: hello, inputs: {name: {type: text}},
		nodes: {greet: {type: greet, in: {name: "{{ run.inputs.name }}"}}}, outputs: {line: "{{ greet.greeting }}"}}`))
	if err != nil {
		panic(err)
	}
	s, err := server.New(ctx, server.Options{
		App: &app.App{Weir: w, Store: store.Complete(db)}, Flows: []app.ServedFlow{{Flow: f}}, RequireToken: true,
	})
	if err != nil {
		panic(err)
	}
	web := httptest.NewServer(s) // in a program: http.Server, or s.Serve
	defer web.Close()

	token, _, err := server.NewToken(ctx, store.Complete(db), "ada", "laptop", []string{string(server.Start), string(server.Read)}, 0)
	if err != nil {
		panic(err)
	}
	c := client.Client{URL: web.URL, Token: token}
	run, err := c.StartRun(ctx, client.Start{Flow: "hello", Inputs: map[string]any{"name": "Ada"}, Wait: 10})
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Status, run.Outputs["line"])
	_, err = (&client.Client{URL: web.URL}).Flows(ctx)
	fmt.Println(err != nil)
	// Output:
	// completed Hello, Ada.
	// true
}
