package builtin_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/weirtest"
)

// liveTexts returns the texts of nodes by path that a reader of the stream of a run is shown, in
// order; retractions are marked.
func liveTexts(ctx context.Context, t *testing.T, text string) (shown []string, r weir.Result) {
	t.Helper()
	w := open(t, weir.Options{Store: memory.New()})
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(ctx, f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	for it, err := range run.Events(ctx) {
		switch {
		case err != nil:
			t.Fatal(err)
		case it.Retracted:
			shown = append(shown, "-"+it.Path)
		case it.Chunk != nil && it.Chunk.Text != "":
			shown = append(shown, it.Path+" "+it.Chunk.Text)
		}
	}
	if r, err = run.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return shown, r
}

func TestSayStreamsInOrderAndIsRetractedWithItsLane(t *testing.T) {
	t.Parallel()
	// The first node waits, so that the reader is there before anything is said.
	head := "weir: 1\nname: f\ncontext: {model: script/x}\nnodes:\n  w: {type: wait, with: {for: 0.05}}\n"
	for name, c := range map[string]struct {
		flow   string
		shown  []string
		status engine.Status
	}{
		"a chain": {"  a: {type: say, after: w, with: {text: one}}\n  b: {type: say, after: a, with: {text: two}}\n", []string{"a one", "b two"}, engine.Completed},
		"nothing": {"  a: {type: say, after: w, with: {text: \"{{ run.flow == 'f' ? '' : 'x' }}\"}}\n", nil, engine.Completed},
		"a run that fails later keeps the text": {
			"  a: {type: say, after: w, with: {text: one}}\n  b: {type: fail, after: a, with: {message: no}}\n", []string{"a one"}, engine.Failed,
		},
		"a shared body that fails keeps the text": {
			"  l: {type: loop, after: w, with: {max: 1, body: {nodes: {a: {type: say, with: {text: one}}, b: {type: fail, after: a, with: {message: no}}}}}}\n",
			[]string{"l#1/a one"},
			engine.Failed,
		},
		"a forked body that fails takes the text back": {
			"  l: {type: loop, after: w, isolation: fork, with: {max: 1, body: {nodes: {a: {type: say, with: {text: one}}, b: {type: fail, after: a, with: {message: no}}}}}}\n",
			[]string{"l#1/a one", "-l#1/a"},
			engine.Failed,
		},
		"a branch of a race that loses takes the text back": {
			"  r: {type: race, after: w, with: {branches: {a: {nodes: {a: {type: say, with: {text: one}}, x: {type: wait, after: a, with: {for: 60}}}}, b: {nodes: {b: {type: wait, with: {for: 0.2}}}}}}}\n",
			[]string{"r#1/a one", "-r#1/a"},
			engine.Completed,
		},
		"a forked body that completes keeps the text": {
			"  l: {type: loop, after: w, isolation: fork, with: {max: 2, atMax: stop, until: \"false\", body: {nodes: {a: {type: say, with: {text: one}}}}}}\n  z: {type: fail, after: l, with: {message: no}}\n",
			[]string{"l#1/a one", "l#2/a one"},
			engine.Failed,
		},
	} {
		shown, r := liveTexts(t.Context(), t, head+c.flow)
		if !slices.Equal(shown, c.shown) || r.Status != c.status {
			t.Errorf("%s: shown %q, %s %v; expected %q, %s", name, shown, r.Status, r.Error, c.shown, c.status)
		}
	}
}

const sayingEach = `
weir: 1
name: f
context: {model: script/x}
nodes:
  ask: {type: manualInput, with: {text: "Go.", history: true}}
  each:
    type: forEach
    after: ask
    KEY
    in: {items: [a, b, c, d]}
    with:
      concurrency: COUNT
      body:
        nodes:
          say: {type: say, in: {item: "{{ inputs.item }}"}, with: {text: "item {{ inputs.item }}", history: true}}
          beside: {type: say, with: {text: "unsaid"}}
  answer: {type: llmRequest, after: each}
outputs: {text: "{{ answer.text }}"}
`

func TestSaidTextEntersTheConversationInOrderOfTheIndex(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"description: shared", "isolation: fork"} {
		for _, count := range []string{"1", "4"} {
			r := weirtest.Flow(t, strings.NewReplacer("KEY", key, "COUNT", count).Replace(sayingEach), weirtest.Case{Script: weirtest.Says("done")})
			var texts []string
			for _, m := range r.Messages {
				texts = append(texts, string(m.Role)+" "+m.Text)
			}
			expect := []string{"user Go.", "assistant item a", "assistant item b", "assistant item c", "assistant item d", "assistant done"}
			if r.Error != nil || !slices.Equal(texts, expect) {
				t.Errorf("%s, %s at a time: %q, %v", key, count, texts, r.Error)
			}
			if len(r.Requests) != 1 || r.Requests[0].Messages[0].Role != convo.User {
				t.Errorf("the request is %+v", r.Requests)
			}
		}
	}
}
