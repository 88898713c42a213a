package memorytool_test

import (
	"context"
	"fmt"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/memory"
	memstore "github.com/weir-run/weir/store/memory"
	memorytool "github.com/weir-run/weir/tool/memory"
)

func ExampleTools() {
	ctx := context.Background()
	s := memstore.New() // or sqlite.Open(ctx, "weir.db", sqlite.Options{})
	tools, err := memorytool.Tools(s, memorytool.Options{Namespace: "support"})
	if err != nil {
		panic(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Tools: tools, Providers: map[string]weir.Provider{"obedient": obedient{}}})
	if err != nil {
		panic(err)
	}
	defer w.Close(ctx) //nolint:errcheck // it is in memory

	f, err := w.Parse("desk.yaml", []byte(deskFlow)) // its model follows its instructions
	if err != nil {
		panic(err)
	}
	run, err := w.Start(ctx, f, weir.Start{User: "ada", Inputs: map[string]any{
		"message": `memoryWrite {"kind": "fact", "key": "diet", "text": "eats no meat"}`,
	}})
	if err != nil {
		panic(err)
	}
	if _, err := run.Wait(ctx); err != nil {
		panic(err)
	}

	for _, user := range []string{"ada", "bert"} {
		found, err := s.Recall(ctx, memory.Query{Scope: memory.Scope{Namespace: "support", User: user}, Text: "Meat?"})
		if err != nil {
			panic(err)
		}
		fmt.Println(user, found.Total)
		for _, i := range found.Items {
			fmt.Println(i.Kind, i.Key, i.Text)
		}
	}
	// Output:
	// ada 1
	// fact diet eats no meat
	// bert 0
}
