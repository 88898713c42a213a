package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// badError panics where it is shown.
type badError struct{ text *string }

func (e *badError) Error() string { return *e.text }

// loopError wraps itself.
type loopError struct{}

func (e loopError) Error() string { return "round and round" }
func (e loopError) Unwrap() error { return e }

// isPanic panics where it is compared.
type isPanic struct{}

func (isPanic) Error() string   { return "odd" }
func (isPanic) Is(error) bool   { panic("Is") }
func (isPanic) As(any) bool     { panic("As") }
func (isPanic) Unwrap() []error { panic("Unwrap") }

// jsonPanic panics where it is stored.
type jsonPanic struct{}

// MarshalJSON implements json.Marshaler.
func (jsonPanic) MarshalJSON() ([]byte, error) { panic("MarshalJSON") }

func deep(n int) any {
	var v any = "end"
	for range n {
		v = []any{v}
	}
	return v
}

func cyclic() any {
	m := map[string]any{}
	m["self"] = m
	return m
}

// functionFault is what a function of others does that none should: it returns a value
// and an error, or does not return.
type functionFault struct {
	name     string
	do       func() (any, error)
	harmless bool // it is no fault of the node
}

func functionFaults() []functionFault {
	value := func(v any) func() (any, error) { return func() (any, error) { return v, nil } }
	fails := func(err error) func() (any, error) { return func() (any, error) { return nil, err } }
	var none *badError
	var noneOfOurs *engine.Error
	var noModel *llm.Error
	return []functionFault{
		{"panic", func() (any, error) { panic("boom") }, false},
		{"panic nil", func() (any, error) { panic(any(nil)) }, false}, //nolint:govet // on purpose
		{"panic with an error that panics", func() (any, error) { panic(none) }, false},
		{"panic with a value that holds itself", func() (any, error) { panic(cyclic()) }, false},
		{"Goexit", func() (any, error) { runtime.Goexit(); return nil, nil }, false},
		{"an error that panics", fails(&badError{}), false},
		{"a wrapped error that panics", fails(fmt.Errorf("wrapped: %w", error(isPanic{}))), false},
		{"a typed nil error", fails(none), false},
		{"a typed nil error of the engine", fails(noneOfOurs), false},
		{"a typed nil error of a model", fails(noModel), false},
		{"an error that wraps itself", fails(loopError{}), false},
		{"an error that panics where it is compared", fails(isPanic{}), false},
		{"a huge error", fails(errors.New(strings.Repeat("x", 10<<20))), false},
		{"an error that is not UTF-8", fails(errors.New("\xff\xfe")), false},
		{"a value that holds itself", value(cyclic()), false},
		{"a very deep value", value(deep(100_000)), false},
		{"NaN", value(math.NaN()), false},
		{"infinity", value([]any{math.Inf(1)}), false},
		{"a channel", value(make(chan int)), false},
		{"a function", value(map[string]any{"f": func() {}}), false},
		{"a huge value", value(make([]any, 9<<20)), false},
		{"a value that panics where it is stored", value(jsonPanic{}), false},
		{"text that is not UTF-8", value("a\xffb"), true},
		{"a nil map", value(map[string]any(nil)), true},
		{"nothing", value(nil), true},
	}
}

// badOutput is what a node of the test outputs.
type badOutput struct {
	V any `json:"v"`
}

// faultyFunction returns a node type whose function ends in the fault's way after it has done
// something with its value.
func faultyFunction(f functionFault, with func(ctx *node.Ctx, v any) error) *weir.Function {
	return weir.Func("bad", func(ctx weir.Ctx, _ struct{}) (badOutput, error) {
		v, err := f.do()
		if err == nil && with != nil {
			return badOutput{}, with(ctx, v)
		}
		return badOutput{v}, err
	})
}

// faultyEffect returns a node type with an effect that ends in the fault's way.
func faultyEffect(f functionFault, guarded bool) *weir.Function {
	return weir.Func("bad", func(ctx weir.Ctx, _ struct{}) (badOutput, error) {
		_, err := ctx.Do(node.Effect{Name: "e", Guarded: guarded, Do: func(context.Context, string) (node.Outcome, error) {
			v, err := f.do()
			return node.Outcome{Value: v}, err
		}})
		return badOutput{}, err
	})
}

// faultyCallSites returns where the function of others is called.
func faultyCallSites() map[string]func(f functionFault) weirtest.Case {
	types := func(t weir.Type) weirtest.Case { return weirtest.Case{Types: []weir.Type{t}} }
	return map[string]func(f functionFault) weirtest.Case{
		"an output":      func(f functionFault) weirtest.Case { return types(faultyFunction(f, nil)) },
		"an inline node": func(f functionFault) weirtest.Case { return types(faultyFunction(f, nil).Pure().Inline()) },
		"the state": func(f functionFault) weirtest.Case {
			return types(faultyFunction(f, func(ctx *node.Ctx, v any) error { return ctx.State().Set("k", v) }))
		},
		"the request of an effect": func(f functionFault) weirtest.Case {
			return types(faultyFunction(f, func(ctx *node.Ctx, v any) error {
				_, err := ctx.Do(node.Effect{Name: "e", Request: v, Do: func(context.Context, string) (node.Outcome, error) {
					return node.Outcome{}, nil
				}})
				return err
			}))
		},
		"an effect":                              func(f functionFault) weirtest.Case { return types(faultyEffect(f, false)) },
		"an effect on the goroutine of its node": func(f functionFault) weirtest.Case { return types(faultyEffect(f, true)) },
		"a provider": func(f functionFault) weirtest.Case {
			return weirtest.Case{
				Model: badModel{f},
			}
		},
	}
}

// badModel answers by a fault; what it returns besides an error is its text.
type badModel struct{ f functionFault }

// Generate implements llm.Provider.
func (b badModel) Generate(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	v, err := b.f.do()
	if err != nil || v == nil {
		return nil, err
	}
	text, ok := v.(string)
	if !ok {
		return nil, errors.New("no text")
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: text}}, nil
}

func TestFaultyFunctionFailsItsNode(t *testing.T) {
	t.Parallel()
	for place, caseOf := range faultyCallSites() {
		for _, f := range functionFaults() {
			t.Run(place+": "+f.name, func(t *testing.T) { checkFault(t, place, f, caseOf(f)) })
		}
	}
}

// checkFault runs a node with the fault at the place: the node fails, unless the
// fault is none there.
func checkFault(t *testing.T, place string, f functionFault, c weirtest.Case) {
	t.Helper()
	keys := "{type: bad}"
	if place == "a provider" {
		keys = "{type: llmRequest, in: {message: x}}"
	}
	r := weirtest.Flow(t, "weir: 1\nname: f\ncontext: {model: script/x}\nnodes:\n  n: "+keys+"\n", c)
	fine := f.harmless && (place != "a provider" || f.name == "text that is not UTF-8") ||
		f.name == "a huge value" && place == "the request of an effect" // a digest of it is kept
	if fine != (r.Status == engine.Completed) || !fine && r.Status != engine.Failed {
		t.Errorf("the run %s: %v", r.Status, r.Error)
	}
	if !fine && (r.Error == nil || r.Error.Node != "n" || r.Error.Message == "") {
		t.Errorf("the failure is %+v", r.Error)
	}
}

func TestFaultyToolIsReportedToTheModel(t *testing.T) {
	t.Parallel()
	for _, f := range functionFaults() {
		t.Run(f.name, func(t *testing.T) {
			hang, err := tool.FromFunc("bad", "bad", func(context.Context, struct{}) (any, error) { return f.do() })
			if err != nil {
				t.Fatal(err)
			}
			r := weirtest.Flow(t, "weir: 1\nname: f\ncontext: {model: script/x}\nnodes:\n  n: {type: llmRequest, in: {message: x, tools: [bad]}}\n", weirtest.Case{
				Tools:  []*weir.Tool{hang},
				Script: []weirtest.Turn{weirtest.Calls("bad", map[string]any{}), weirtest.Says("done")[0]},
			})
			if r.Status != engine.Completed {
				t.Errorf("the run %s: %v", r.Status, r.Error)
			}
		})
	}
}

func TestWritingManyKeysIsLinearAndBounded(t *testing.T) {
	t.Parallel()
	many := weir.FuncWith("many", func(ctx weir.Ctx, _ struct{}, with struct {
		N int `json:"n"`
	},
	) (struct{}, error) {
		for i := range with.N {
			if err := ctx.State().Set(fmt.Sprint("k", i), i); err != nil {
				return struct{}{}, err
			}
		}
		if got, ok := ctx.State().Get("k7"); !ok || got != int64(7) {
			return struct{}{}, fmt.Errorf("k7 is %v", got)
		}
		if n := len(ctx.State().Keys()); n != with.N {
			return struct{}{}, fmt.Errorf("there are %d keys", n)
		}
		return struct{}{}, nil
	})
	r := weirtest.Flow(t, "weir: 1\nname: f\nnodes: {n: {type: many, with: {n: 100000}}}\n", weirtest.Case{Types: []weir.Type{many}, Timeout: 5 * time.Minute})
	if r.Status != engine.Completed || len(r.State) != 100_000 {
		t.Errorf("the run %s with %d keys: %v", r.Status, len(r.State), r.Error)
	}
	r = weirtest.Flow(t, "weir: 1\nname: f\nnodes: {n: {type: many, with: {n: 100001}}}\n", weirtest.Case{Types: []weir.Type{many}, Timeout: 5 * time.Minute})
	if r.Error == nil || r.Error.Code != engine.CodeValue || !strings.Contains(r.Error.Message, "the limit is 100000") {
		t.Errorf("the run %s: %v", r.Status, r.Error)
	}
}
