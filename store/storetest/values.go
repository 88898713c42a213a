package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

func valueCases() []testCase {
	return []testCase{
		{"values of every kind are read as they were written", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			for range 3 { // the second and third are like the first
				for _, v := range trickyValues() {
					w.append(t,
						&engine.EffectCompleted{Key: "k", Result: v, Manifest: v},
						&engine.NodeCompleted{
							Path: "n", Outputs: engine.Values{{Name: "$v", Value: v}}, Metadata: engine.Values{{Name: "m", Value: v}},
							State: []engine.StateChange{{Key: "k", Value: v}, {Key: "gone", Delete: true}},
						},
						&engine.InterruptAnswered{ID: "i", Value: v})
				}
			}
			w.check(t, s)
		}},
		{"repeated values are read in every place", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			big := map[string]any{"text": strings.Repeat("large ", 500), "n": int64(1)}
			for i := range 5 {
				w.append(t, &engine.NodeCompleted{Path: fmt.Sprint("n", i), Outputs: engine.Values{
					{Name: "whole", Value: big}, {Name: "in", Value: []any{big, big["text"]}}, {Name: "part", Value: big["text"]},
				}})
			}
			w.check(t, s)
			child := newWriter(t, s, "other")
			child.append(t, &engine.RunStarted{Inputs: engine.Values{{Name: "whole", Value: big}}, Parallel: 1})
			child.check(t, s)
		}},
		{"texts of events that are no values are read back", func(t *testing.T, s Store) {
			long := strings.Repeat("why it failed ", 200)
			w := newWriter(t, s, "r")
			fail := &engine.Error{Code: "c", Message: long, Node: "n", Hint: "h"}
			w.append(t,
				&engine.RunStarted{Pinned: map[string]string{"a": long, "b": "1"}, Targets: []string{"x"}, Parallel: 1},
				&engine.NodeWaiting{Path: "n", Interrupts: []engine.Interrupt{{
					ID: "i", Kind: engine.AwaitInput, Prompt: long,
					Schema: map[string]any{"type": "string", "minLength": int64(1), "enum": []any{"a"}},
				}}},
				&engine.NodeFailed{Path: "n", Error: fail}, &engine.RunFailed{Error: fail},
				&engine.NodeExpanded{Path: "n", Items: []engine.Values{{{Name: "item", Value: long}}, nil}})
			w.check(t, s)
		}},
		{"random values are read back", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			r := rand.New(rand.NewPCG(1, 2))
			for range 60 {
				w.append(t, &engine.EffectCompleted{Key: "k", Result: randomValue(r, 4)},
					&engine.NodeCompleted{Path: "n", Outputs: engine.Values{{Name: "out", Value: randomValue(r, 3)}}})
			}
			w.check(t, s)
		}},
	}
}

func trickyValues() []engine.Value {
	text := "a text that is long enough to be kept apart from its commit"
	values := []engine.Value{
		nil, true, false, int64(0), int64(math.MaxInt64), int64(math.MinInt64), 1.0, -0.5, 1e300, 1e21, "",
		"short", text,
		[]any{text, text, nil},
		map[string]any{"a": text, "b": map[string]any{"c": text}},
		engine.Handle{ID: "main"},
		engine.Handle{},
		[]any{},
		map[string]any{},
		"naïve ☕ \U0001F600 \u2028 \x01 \" \\ </script>", strings.Repeat("ü", 700), strings.Repeat("\"\\\n", 400),
		strings.Repeat("mega", 1<<18),
		[]any{int64(1), 1.0, "1", []any{[]any{}}},
		"#1", "n#12/a", "n#13/a",
		map[string]any{"n#12/a": "n#12/a"},
		map[string]any{"": ""},
		"/", ":", `{"$v":1}`, `"`,
	}
	list := make([]any, 300)
	for i := range list {
		list[i] = map[string]any{"i": int64(i), "f": float64(i), "s": fmt.Sprint("item ", i)}
	}
	values = append(values, list)
	for _, key := range []string{"$", "$v", "$m", "$context", "$s", "$x", "$v\n", "\"$v\""} {
		for _, v := range []any{int64(1), "main", map[string]any{"$v": int64(1)}, []any{int64(1), int64(0)}, text} {
			values = append(values, map[string]any{key: v}, map[string]any{key: v, "more": v}, []any{map[string]any{key: map[string]any{key: v}}})
		}
	}
	return values
}

func randomValue(r *rand.Rand, depth int) engine.Value {
	words := []string{"a", "$v", "$m", "$", "refine#2/draft", "refine#3/draft", "ask:answer#1", strings.Repeat("long text ", 8), strings.Repeat("x", 1500)}
	switch n := r.IntN(8); {
	case n <= 1 && depth > 0:
		l := make([]any, r.IntN(5))
		for i := range l {
			l[i] = randomValue(r, depth-1)
		}
		return l
	case n <= 3 && depth > 0:
		m := map[string]any{}
		for range r.IntN(4) {
			m[words[r.IntN(len(words))]] = randomValue(r, depth-1)
		}
		return m
	case n == 4:
		return r.Int64() - r.Int64()
	case n == 5:
		return r.NormFloat64()
	case n == 6:
		return engine.Handle{ID: words[r.IntN(len(words))]}
	}
	return words[r.IntN(len(words))]
}

// messageChange returns a change that appends a message.
func messageChange(context, id, text string) engine.ContextChange {
	return engine.ContextChange{ID: context, Adds: 1, Body: &convo.Change{
		Append: []convo.Message{{ID: id, Role: convo.User, Text: text}},
	}}
}

func messageCases() []testCase {
	return []testCase{
		{"messages are read by position", messagesByPosition},
		{"messages keep every field", fullMessages},
		{"a forked context begins where it was forked", forkedContexts},
		{"a message's text may also occur elsewhere", repeatedTexts},
		{"a message's text inside a large value still belongs to the message", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			filler := strings.Repeat("x", 100)
			for i := range 5 {
				text := fmt.Sprint("message with some text, number ", i)
				big := []any{text}
				for j := range 40 {
					big = append(big, map[string]any{"n": int64(j), "s": filler[:20]})
				}
				w.append(t, &engine.EffectCompleted{Key: "k", Result: map[string]any{"all": big, "again": []any{big}}},
					&engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "", text)}})
			}
			w.check(t, s)
		}},
		{"every part of a change is read back", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			temperature, output, session := 1.0, strings.Repeat("out ", 400), "s-1"
			settings := &convo.Settings{Provider: "p", Model: "m", System: strings.Repeat("be kind ", 300), Temperature: &temperature, MaxOutput: 5}
			for _, b := range []convo.Change{
				{Create: true, Kind: convo.Isolated, Label: "l", Settings: settings},
				{Create: true, Kind: convo.Main, Epoch: 7, Session: &session, Marks: &convo.Marks{Cut: 9, Pins: []int{8}}},
				{Set: settings},
				{Reset: true},
				{Output: &output},
				{Session: &session},
				{Append: []convo.Message{{ID: "v", Role: convo.User, Text: "again"}}, Versions: true},
				{Marks: &convo.Marks{Cut: 3, Cleared: 5, Pins: []int{0, 2}, Factor: 110, Summary: &convo.Summary{From: 0, To: 3, Text: "was"}}},
				{Output: new(string)},
				{Append: []convo.Message{{Role: convo.Assistant, Text: output}}},
			} {
				w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{{ID: "main", Body: &b, Adds: len(b.Append)}, {ID: "main", Body: b, Adds: len(b.Append)}}})
				w.append(t, &engine.NodeFailed{Path: "n", Contexts: []engine.ContextChange{{ID: "other", Create: true, Body: &b, Adds: len(b.Append)}}})
			}
			w.check(t, s)
		}},
		{"a body that was read from JSON is stored like any other", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{{
				ID: "main", Adds: 1,
				Body: json.RawMessage(`{"append":[{"role":"user","text":"from JSON, and long enough to be shared"}]}`),
			}}})
			w.check(t, s)
			ms, err := s.Messages(t.Context(), "r", "main", 0, 10)
			must(t, err)
			equal(t, "messages", ms, []convo.Message{{Role: convo.User, Text: "from JSON, and long enough to be shared"}})
		}},
		{"messages continue after reopening", func(t *testing.T, s Store) {
			w := newWriter(t, s, "r")
			w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "1", "one, long enough to be shared with others")}})
			s = reopened(t, s)
			w.s = s
			w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "2", "two")}})
			w.check(t, s)
			ms, err := s.Messages(t.Context(), "r", "main", 0, 10)
			must(t, err)
			equal(t, "messages", len(ms), 2)
		}},
	}
}

func messagesByPosition(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	other := newWriter(t, s, "other")
	other.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", "x", "not yours")}})
	var want []convo.Message
	for i := range 30 {
		text := fmt.Sprintf("message %d with some text to it", i)
		w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{
			messageChange("main", fmt.Sprint("m", i), text), messageChange("side", fmt.Sprint("s", i), text),
		}})
		want = append(want, convo.Message{ID: fmt.Sprint("m", i), Role: convo.User, Text: text})
	}
	w.check(t, s)
	for _, r := range [][2]int{{0, 30}, {0, 0}, {29, 30}, {5, 12}, {0, 99}, {-3, 2}, {40, 50}, {12, 5}} {
		ms, err := s.Messages(t.Context(), "r", "main", r[0], r[1])
		must(t, err)
		from := min(max(r[0], 0), 30)
		to := max(min(r[1], 30), from)
		equal(t, fmt.Sprint("messages ", r), ms, append([]convo.Message{}, want[from:to]...))
	}
	ms, err := s.Messages(t.Context(), "r", "nowhere", 0, 10)
	must(t, err)
	equal(t, "of no context", len(ms), 0)
	for _, f := range []struct {
		id      string
		n, want int
	}{{"m7", 30, 7}, {"m7", 8, 7}, {"m7", 7, -1}, {"s7", 30, -1}, {"m7", 0, -1}} {
		at, err := s.FindMessage(t.Context(), "r", "main", f.id, f.n)
		must(t, err)
		equal(t, fmt.Sprint("position of ", f), at, f.want)
	}
}

func fullMessages(t *testing.T, s Store) {
	long := strings.Repeat("word ", 300)
	ms := []convo.Message{
		{ID: "1", Role: convo.System, Text: ""},
		{ID: "2", Role: convo.User, Text: "hi", Parts: []convo.Part{{Kind: "image", MIME: "image/png", Data: []byte(long)}, {Kind: "file", Name: "f", URL: "https://example.org/f?a=b&c=d"}}},
		{
			ID: "3", Role: convo.Assistant, Reasoning: long, Calls: []convo.Call{{ID: "c1", Name: "search", Arguments: `{"q": "a  b"}`}, {ID: "c2", Name: "n", Arguments: long}},
			Native: json.RawMessage(`[{"signature" : "a<b>",  "n":1.50}]`), Provider: "p",
		},
		{ID: "4", Role: convo.Tool, Text: long, CallID: "c1", Name: "search", Failed: true},
		{ID: "5", Role: convo.User, Text: "x", Pinned: true, Priority: 90, Metadata: convo.Metadata{"n": int64(1), "f": 1.5, "l": []any{"a"}, "$v": int64(3)}},
		{Role: convo.User, Text: "without id", Metadata: convo.Metadata{"$v": int64(1)}},
	}
	w := newWriter(t, s, "r")
	result := map[string]any{"text": long, "reasoning": long, "calls": []any{map[string]any{"arguments": long}}}
	w.append(t, &engine.EffectCompleted{Key: "k", Result: result},
		&engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{{ID: "main", Adds: len(ms), Body: &convo.Change{Append: ms}}}})
	w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{{ID: "main", Adds: len(ms), Body: &convo.Change{Append: ms}}}})
	w.check(t, s)
	got, err := s.Messages(t.Context(), "r", "main", 0, 99)
	must(t, err)
	equal(t, "messages", got, append(append([]convo.Message{}, ms...), ms...))
}

func forkedContexts(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	w.append(t, &engine.RunStarted{Parallel: 1, Contexts: []engine.ContextChange{{ID: "main", Create: true, Body: &convo.Change{Create: true}}}})
	w.append(t, &engine.NodeCompleted{Path: "a", Contexts: []engine.ContextChange{messageChange("main", "1", "one"), messageChange("main", "2", "two")}})
	w.append(t, &engine.NodeStarted{Path: "b", Forks: []engine.ContextChange{{ID: "lane", Create: true, Parent: "main", At: 2, Body: &convo.Change{Create: true, Kind: convo.Isolated}}, {ID: "bare", Create: true, Parent: "main", At: 1}}})
	s = s.reopen(t)
	w.s = s
	w.append(t, &engine.NodeCompleted{Path: "b", Contexts: []engine.ContextChange{messageChange("lane", "3", "three"), messageChange("bare", "4", "four")}})
	w.append(t, &engine.NodeCompleted{Path: "c", Contexts: []engine.ContextChange{messageChange("lane", "5", "five")}})
	w.check(t, s)
	for _, c := range []struct {
		context  string
		from, to int
		want     []string
	}{{"lane", 0, 9, []string{"3", "5"}}, {"lane", 2, 3, []string{"3"}}, {"lane", 0, 2, nil}, {"bare", 1, 2, []string{"4"}}, {"main", 0, 9, []string{"1", "2"}}} {
		ms, err := s.Messages(t.Context(), "r", c.context, c.from, c.to)
		must(t, err)
		var ids []string
		for _, m := range ms {
			ids = append(ids, m.ID)
		}
		equal(t, fmt.Sprint("messages of ", c), ids, c.want)
	}
	at, err := s.FindMessage(t.Context(), "r", "lane", "5", 9)
	must(t, err)
	equal(t, "position in a lane", at, 3)
}

func repeatedTexts(t *testing.T, s Store) {
	w := newWriter(t, s, "r")
	for i := range 6 {
		asked := fmt.Sprintf("a question that is asked, number %d of some", i/2)
		answered := fmt.Sprintf("an answer that is given, number %d", i)
		w.append(t, &engine.InterruptAnswered{ID: "i", Value: asked},
			&engine.NodeCompleted{Path: "ask", Outputs: engine.Values{{Name: "text", Value: asked}, {Name: "value", Value: asked}}})
		result := map[string]any{"message": map[string]any{"role": "assistant", "text": answered}}
		w.append(t, &engine.EffectCompleted{Key: "k", Result: result},
			&engine.NodeCompleted{
				Path: "reply", Outputs: engine.Values{{Name: "text", Value: answered}},
				Contexts: []engine.ContextChange{messageChange("main", "", asked), messageChange("side", "", answered), messageChange("main", "", answered), {ID: "main", Body: &convo.Change{Output: &answered}}},
			})
		w.append(t, &engine.IterationCompleted{Path: "loop#1", Outputs: engine.Values{{Name: "said", Value: []any{asked, answered, "hm"}}}})
	}
	w.check(t, s)
}
