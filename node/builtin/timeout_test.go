package builtin_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// blockingNodes are nodes that do not end within their timeout, each in its own way.
func blockingNodes() map[string]string {
	return map[string]string{
		"a question":              `{type: userInput, TIME, with: {prompt: "?"}}`,
		"a timer":                 `{type: wait, TIME, with: {for: 1h}}`,
		"an event":                `{type: waitEvent, TIME, with: {name: never}}`,
		"a child run":             `{type: flow, TIME, with: {flow: child.yaml}}`,
		"a body":                  `{type: forEach, TIME, in: {items: [1]}, with: {body: {nodes: {w: {type: wait, with: {for: 1h}}}}}}`,
		"a lane":                  `{type: forEach, TIME, isolation: fork, in: {items: [1, 2]}, with: {concurrency: 2, body: {nodes: {w: {type: wait, with: {for: 1h}}}}}}`,
		"a loop":                  `{type: loop, TIME, with: {max: 2, until: "false", body: {nodes: {w: {type: userInput, with: {prompt: "?"}}}}}}`,
		"a loop without end":      `{type: loop, TIME, with: {max: 100000, until: "false", body: {nodes: {w: {type: wait, with: {for: 10ms}}}}}}`,
		"a function":              `{type: stubborn, TIME}`,
		"a tool":                  `{type: llmRequest, TIME, in: {message: x, tools: [hang]}}`,
		"a lazy port":             `{type: cache, TIME, in: {value: "{{ slow.value }}"}, with: {key: k}}`,
		"a function in a body":    `{type: forEach, TIME, in: {items: [1]}, with: {body: {nodes: {w: {type: stubborn}}}}}`,
		"a function that listens": `{type: listens, TIME}`,
	}
}

const waitingChild = "weir: 1\nname: child\nnodes: {w: {type: wait, with: {for: 1h}}}\n"

// blockingFunctions are functions that end when the test does, whatever their context says.
func blockingFunctions(t *testing.T) ([]weir.Type, *weir.Tool) {
	t.Helper()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	hang, err := tool.FromFunc("hang", "hangs", func(context.Context, struct{}) (string, error) {
		<-over
		return "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return []weir.Type{
		weir.Func("stubborn", func(weir.Ctx, struct{}) (struct{}, error) {
			<-over
			return struct{}{}, nil
		}),
		weir.Func("listens", func(c weir.Ctx, _ struct{}) (struct{}, error) {
			<-c.Done()
			return struct{}{}, c.Err()
		}),
	}, hang
}

func TestTimeoutEndsEveryWaitingNode(t *testing.T) {
	t.Parallel()
	for name, keys := range blockingNodes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types, hang := blockingFunctions(t)
			text := "weir: 1\nname: late\ncontext: {model: script/demo}\nnodes:\n  slow: {type: wait, in: {value: 1}, with: {for: 1h}}\n  n: " +
				strings.Replace(keys, "TIME", "timeout: 150ms, onError: {value: null}", 1) + "\n  after: {type: template, after: n, with: {text: ran}}\n" +
				"  stop: {type: fail, after: after, with: {message: enough}}\n"
			if !strings.Contains(keys, "slow.value") {
				text = strings.Replace(text, "  slow: {type: wait, in: {value: 1}, with: {for: 1h}}\n", "", 1)
			}
			r := weirtest.Flow(t, text, weirtest.Case{
				Files: map[string]string{"child.yaml": waitingChild}, Types: types, Tools: []*weir.Tool{hang},
				Script: []weirtest.Turn{weirtest.Calls("hang", map[string]any{}), weirtest.Calls("hang", map[string]any{})},
			})
			if r.Error == nil || r.Error.Code != "fail" && !strings.Contains(r.Error.Message, "enough") {
				t.Fatalf("the run %s: %v", r.Status, r.Error)
			}
			timedOut := false
			for _, e := range r.Events {
				if f, ok := e.(*engine.NodeFailed); ok && f.Path == "n" && f.Error.Code == engine.CodeTimeout {
					timedOut = true
				}
			}
			if !timedOut {
				t.Errorf("the node did not fail at its timeout: %+v", r.Events)
			}
		})
	}
}

func TestResultAfterTimeoutIsDiscarded(t *testing.T) {
	t.Parallel()
	release, returned := make(chan struct{}), make(chan error, 1)
	late := weir.Func("late", func(ctx weir.Ctx, _ struct{}) (struct {
		Text string `json:"text"`
	}, error,
	) {
		<-release
		_ = ctx.State().Set("k", 1)
		_, err := ctx.Do(node.Effect{Name: "write", Do: func(context.Context, string) (node.Outcome, error) {
			t.Error("an effect began after the timeout")
			return node.Outcome{}, nil
		}})
		returned <- err
		return struct {
			Text string `json:"text"`
		}{"late"}, nil
	})
	w, err := weir.Open(weir.Options{Types: []weir.Type{late}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(t.Context()) }()
	f, err := w.Parse("flow.yaml", []byte("weir: 1\nname: x\nnodes: {n: {type: late, timeout: 50ms, onError: {value: gave up}}}\noutputs: {v: \"{{ n.text }}\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if v, _ := r.Outputs.Get("v"); err != nil || v != "gave up" {
		t.Fatalf("the run %s with %v (%v, %v)", r.Status, r.Outputs, r.Error, err)
	}
	if n := w.Abandoned(); n != 1 {
		t.Errorf("%d functions are abandoned, not 1", n)
	}
	close(release)
	if err := <-returned; err == nil {
		t.Error("the effect was not refused")
	}
	for range 500 {
		if w.Abandoned() == 0 {
			return
		}
		<-time.After(10 * time.Millisecond) // the count falls soon after the return
	}
	t.Error("the function has returned and is still counted")
}

func TestIdleTimeoutIsRejectedForNodesWithoutProgress(t *testing.T) {
	t.Parallel()
	types, _ := blockingFunctions(t)
	w, err := weir.Open(weir.Options{Types: types})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(t.Context()) }()
	for name, keys := range blockingNodes() {
		text := "weir: 1\nname: late\nnodes:\n  n: " + strings.Replace(keys, "TIME", "timeout: {idle: 1s}", 1) + "\n  slow: {type: template, with: {text: x}}\n"
		_, err := w.ParseIn(flow.MemFiles(map[string]string{"child.yaml": waitingChild}), "flow.yaml", []byte(text))
		refused := err != nil && strings.Contains(err.Error(), "timeout.idle")
		acts := slices.Contains([]string{"a function", "a function that listens", "a tool", "a lazy port"}, name)
		if refused == acts {
			t.Errorf("%s: %v", name, err)
		}
	}
}
