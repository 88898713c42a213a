package livetext_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/server/livetext"
)

func parse(t *testing.T, text string) *flow.Flow {
	t.Helper()
	w, err := weir.Open(weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(t.Context()) }) // it runs nothing
	f, err := w.Parse("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheLastNodesAndAgentsSpeak(t *testing.T) {
	t.Parallel()
	const head = "weir: 1\nname: f\ncontext: {model: a/b}\nnodes:\n"
	for name, c := range map[string]struct{ nodes, want string }{
		"one":                  {"  a: {type: llmRequest, in: {message: x}}", "a"},
		"the last of a chain":  {"  a: {type: llmRequest, in: {message: x}}\n  b: {type: llmRequest, in: {message: '{{ a.text }}'}}", "b"},
		"an agent and a last":  {"  a: {type: agent, in: {message: x}}\n  b: {type: llmRequest, in: {message: '{{ a.text }}'}}", "a b"},
		"before a loop":        {"  a: {type: llmRequest, in: {message: x}}\n  b: {type: loop, after: a, with: {max: 2, body: {nodes: {c: {type: llmRequest, in: {message: x}}}}}}", ""},
		"what leaves no trace": {"  a: {type: llmRequest, in: {message: x}}\n  b: {type: llmRequest, in: {message: '{{ a.text }}'}, with: {skipHistory: true}}", "a"},
		"a context of its own": {"  n: {type: newContext}\n  b: {type: llmRequest, in: {message: x, context: '{{ n.context }}'}}", ""},
		"two branches": {"  d: {type: decision, with: {expr: '\"y\"', branches: [y, z]}}\n  a: {type: llmRequest, after: d.y, in: {message: x}}\n" +
			"  b: {type: llmRequest, after: d.z, in: {message: x}}", "a b"},
	} {
		got := slices.Sorted(maps.Keys(livetext.Speakers(parse(t, head+c.nodes+"\n"))))
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
	}
}

// twoNodes has two last nodes that speak at the same time.
const twoNodes = `weir: 1
name: f
context: {model: a/b}
nodes:
  a: {type: llmRequest, in: {message: x}}
  n: {type: llmRequest, in: {message: x}}
`

func TestTextIsReturnedOnceAndInOrder(t *testing.T) {
	t.Parallel()
	text := func(path, s string) weir.Item {
		return weir.Item{Path: path, Effect: path + "/model#1", Chunk: &llm.Chunk{Text: s}}
	}
	snapshot := func(path, s string) weir.Item {
		it := text(path, s)
		it.Snapshot = true
		return it
	}
	done := func(path string) weir.Item {
		return weir.Item{Event: &engine.EffectCompleted{Key: path + "/model#1"}}
	}
	retracted := func(path string) weir.Item {
		return weir.Item{Path: path, Effect: path + "/model#1", Retracted: true}
	}
	child := text("a", "no")
	child.PathPrefix = "x>"
	summary := text("a", "no")
	summary.Effect = "a/summary#1"
	f := parse(t, twoNodes)
	for name, c := range map[string]struct {
		items []weir.Item
		end   string // of the record
		want  string
		err   bool
	}{
		"pieces":                       {[]weir.Item{text("a", "He"), text("a", "y"), done("a")}, "Hey", "He|y|", false},
		"nothing live":                 {nil, "Hey", "Hey", false},
		"a summary":                    {[]weir.Item{summary}, "Hey", "|Hey", false},
		"a child run":                  {[]weir.Item{child}, "Hey", "|Hey", false},
		"the rest of the record":       {[]weir.Item{text("a", "He")}, "Hey", "He|y", false},
		"two at once":                  {[]weir.Item{text("a", "A"), text("n", "N"), text("a", "B"), done("a"), done("n")}, "N", "A||B|\n\nN||", false},
		"another text of the record":   {[]weir.Item{text("a", "A"), done("a")}, "B", "A||\n\nB", false},
		"retracted":                    {[]weir.Item{text("a", "A"), retracted("a")}, "", "A|", true},
		"retracted before it was sent": {[]weir.Item{text("a", "A"), text("n", "N"), retracted("n"), done("a")}, "A", "A||||", false},
		"snapshot that continues":      {[]weir.Item{text("a", "A"), {Gap: true}, text("a", "x"), snapshot("a", "ABC"), done("a")}, "ABC", "A|||BC||", false},
		"snapshot that contradicts":    {[]weir.Item{text("a", "A"), {Gap: true}, snapshot("a", "BC")}, "", "A||", true},
		"a gap to the end":             {[]weir.Item{text("a", "A"), {Gap: true}}, "B", "A||", true},
	} {
		r := livetext.NewReader(f)
		var got []string
		var err error
		for i := range c.items {
			var s string
			if s, err = r.Next(&c.items[i]); err != nil {
				break
			}
			got = append(got, s)
		}
		if err == nil {
			var s string
			s, err = r.End(c.end)
			got = append(got, s)
		}
		if errors.Is(err, livetext.ErrRetracted) != c.err || strings.TrimRight(strings.Join(got, "|"), "|") != strings.TrimRight(c.want, "|") {
			t.Errorf("%s: %q, %v; expected %q", name, strings.Join(got, "|"), err, c.want)
		}
	}
}

func TestTheTextOfARoundThatIsRepeatedIsVoid(t *testing.T) {
	t.Parallel()
	f := parse(t, twoNodes)
	again := &weir.Item{Event: &engine.RunFailed{Repeat: &engine.RoundRepeat{}}}
	said := &weir.Item{Path: "a", Effect: "model#1", Chunk: &llm.Chunk{Text: "hello"}}
	r := livetext.NewReader(f)
	if text, err := r.Next(again); text != "" || err != nil { // nothing was sent
		t.Error(text, err)
	}
	if text, err := r.Next(said); text != "hello" || err != nil {
		t.Error(text, err)
	}
	if _, err := r.Next(again); !errors.Is(err, livetext.ErrRetracted) {
		t.Error(err)
	}
	if _, err := r.Next(&weir.Item{Event: &engine.RunFailed{}}); err != nil {
		t.Error("a run that fails for good keeps its text:", err)
	}
}
