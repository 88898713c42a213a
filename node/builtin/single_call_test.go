package builtin_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// singleCallCase is a node that is asked in the middle of a conversation, and what its
// model is given then.
type singleCallCase struct{ name, typ, in, with, answer, given string }

func TestSingleCallNodesSendOneMessageAndWriteNothing(t *testing.T) {
	const task = "Summarise this in at most 30 words.\n\n<text>\n"
	for _, c := range []singleCallCase{
		{"a message", "categorizer", `message: "m"`, "categories: [x, y]", `{"category": "x"}`, "m"},
		{"the last message", "categorizer", `context: "{{ one.context }}"`, "categories: [x, y]", `{"category": "x"}`, "hi"},
		{"a message", "extract", `message: "m"`, "schema: {type: object}", `{}`, "m"},
		{"the last message", "extract", `context: "{{ one.context }}"`, "schema: {type: object}", `{}`, "hi"},
		{"a text", "summarize", `text: "m"`, "maxTokens: 40", "short", task + "m\n</text>"},
		{"messages", "summarize", `messages: [{role: user, text: m}]`, "maxTokens: 40", "short", task + "user: m\n</text>"},
		{"the conversation", "summarize", `context: "{{ one.context }}"`, "maxTokens: 40", "short", task + "user: hello\nassistant: hi\n</text>"},
	} {
		t.Run(c.typ+" of "+c.name, c.check)
	}
}

func (c singleCallCase) check(t *testing.T) {
	r := weirtest.Flow(t, `
weir: 1
name: aside
context: {model: script/demo, system: Be rude.}
nodes:
  one: {type: llmRequest, in: {message: "hello"}}
  aside: {type: `+c.typ+`, after: one, in: {`+c.in+`}, with: {system: Mind the gap., `+c.with+`}}
  two: {type: llmRequest, after: aside, in: {context: "{{ aside.context }}", message: "bye"}}
outputs: {usage: "{{ aside.usage }}"}
`, weirtest.Case{Script: weirtest.Says("hi", c.answer, "so long")})
	if r.Status != engine.Completed || len(r.Requests) != 3 {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	if got := messageValue(r.Requests[1]); !reflect.DeepEqual(got, []string{"user: " + c.given}) {
		t.Errorf("the model was given %q, expected %q", got, c.given)
	}
	if s := r.Requests[1].System; strings.Contains(s, "rude") || !strings.Contains(s, "Mind the gap.") || len(s) < 100 {
		t.Errorf("the instructions are %q", s)
	}
	if got := messageValue(r.Requests[2]); !reflect.DeepEqual(got, []string{"user: hello", "assistant: hi", "user: bye"}) {
		t.Errorf("the next node was given %q", got)
	}
	if u := weirtest.Output[map[string]any](t, r, "usage"); u["calls"] != int64(1) {
		t.Errorf("the usage is %v", u)
	}
}

func TestSingleCallNodesWithoutAMessageFailBeforeAnyCall(t *testing.T) {
	for typ, with := range map[string]map[string]any{
		"categorizer": {"categories": []any{"x"}}, "extract": {"schema": map[string]any{"type": "object"}}, "summarize": nil,
	} {
		r := weirtest.Node(t, builtin.Catalogue().Type(typ), weirtest.Case{With: with})
		if r.Error == nil || r.Error.Code != builtin.CodeInput || len(r.Requests) != 0 {
			t.Errorf("%s: the run %s: %v, after %d calls", typ, r.Status, r.Error, len(r.Requests))
		}
	}
}

// route is a flow in which each category leads somewhere.
const route = `
weir: 1
name: route
context: {model: script/demo}
nodes:
  ask: {type: userInput, with: {history: true}}
  route: {type: categorizer, in: {message: "{{ ask.text }}"}, with: {categories: [talk, work, rest]}}
  talk: {type: llmRequest, in: {message: "{{ route.talk }}"}}
  work: {type: template, after: route.work, with: {text: at work}}
outputs: {category: "{{ route.category }}", talk: "{{ talk.text }}", work: "{{ work.text }}"}
`

func TestCategorizerTakesOneBranchAndPassesTheMessage(t *testing.T) {
	r := weirtest.Flow(t, route, weirtest.Case{
		Answers: map[string]any{"ask": "hello there"},
		Script:  weirtest.Says(`{"category": "talk"}`, "hi"),
	})
	if want := map[string]any{"category": "talk", "talk": "hi"}; !reflect.DeepEqual(r.Outputs, want) {
		t.Fatalf("the outputs are %v (%s, %v), expected %v", r.Outputs, r.Status, r.Error, want)
	}
	if got := messageValue(r.Requests[1]); !reflect.DeepEqual(got, []string{"user: hello there"}) {
		t.Errorf("the person's words reached the model as %q", got)
	}
	if got := r.Messages; len(got) != 2 || got[0].ID != "ask.text" {
		t.Errorf("the history is %+v", got)
	}
}

func TestCategorizerRepairsAnUnknownCategoryOnce(t *testing.T) {
	text, in := route, weirtest.Case{Answers: map[string]any{"ask": "x"}}
	in.Script = weirtest.Says("It is work.", `{"category": "work"}`)
	r := weirtest.Flow(t, text, in)
	if got := r.Outputs["work"]; got != "at work" || len(r.Requests) != 2 {
		t.Fatalf("after a repair: %v, %v", r.Outputs, r.Error)
	}
	schema := r.Requests[0].Schema["properties"].(map[string]any)["category"].(map[string]any)
	if !reflect.DeepEqual(schema["enum"], []any{"talk", "work", "rest"}) {
		t.Errorf("the schema is %v", schema)
	}
	in.Script = weirtest.Says("It is work.", "It is work.")
	if r = weirtest.Flow(t, text, in); r.Error == nil || r.Error.Code != engine.CodeModelAnswer || r.Error.Node != "route" {
		t.Errorf("after two bad answers the run %s: %v", r.Status, r.Error)
	}
	text = strings.Replace(text, "rest]}", "rest], default: talk}", 1)
	in.Script = weirtest.Says("It is work.", "It is work.")
	if r = weirtest.Flow(t, text, in); r.Error == nil || r.Error.Code != engine.CodeModelAnswer {
		t.Errorf("answers that cannot be read took the default: %v", r.Outputs)
	}
	in.Script = weirtest.Says("It is work.", "none of these", "hi")
	if r = weirtest.Flow(t, text, in); r.Outputs["category"] != "talk" || r.Outputs["talk"] != "hi" {
		t.Errorf("with a default the outputs are %v: %v", r.Outputs, r.Error)
	}
	told := false
	for _, e := range r.Events {
		if done, ok := e.(*engine.NodeCompleted); ok && done.Path == "route" {
			_, told = done.Metadata.Get("default")
		}
	}
	if !told {
		t.Error("the metadata do not say that the default was taken")
	}
	in.Script = []weirtest.Turn{weirtest.Fails(engine.CodeModelAuth)}
	if r = weirtest.Flow(t, text, in); r.Error == nil || r.Error.Code != engine.CodeModelAuth {
		t.Errorf("a call that failed took the default: %s, %v", r.Status, r.Error)
	}
}

func TestCategorizerBranchesMayShareATarget(t *testing.T) {
	r := weirtest.Flow(t, `{"weir": 1, "name": "one", "context": {"model": "script/demo"},
 "nodes": {
  "route": {"type": "categorizer", "in": {"message": "hello"}, "with": {"categories": ["a", "b", "c"]}},
  "say": {"type": "llmRequest"}
 },
 "edges": [{"from": "route.a", "to": "say.message"}, {"from": "route.b", "to": "say.message"}],
 "outputs": {"said": "{{ say.text }}"}}`, weirtest.Case{Script: weirtest.Says(`{"category": "b"}`, "hi")})
	if r.Outputs["said"] != "hi" {
		t.Fatalf("the outputs are %v: %v", r.Outputs, r.Error)
	}
	if got := messageValue(r.Requests[1]); !reflect.DeepEqual(got, []string{"user: hello"}) {
		t.Errorf("the model was given %q", got)
	}
}

func TestOddSettingsStillGivePorts(t *testing.T) {
	for typ, odd := range map[string][]any{
		"categorizer": {nil, 5, []any{nil, 1.5, true, "category", "", "error", "a", "a", map[string]any{"name": nil}}, map[string]any{"limit": 1}},
		"extract":     {nil, 5, map[string]any{"properties": 5}, map[string]any{"properties": map[string]any{"": 1, "error": nil, "x": nil}}},
	} {
		spec := builtin.Catalogue().Lookup(typ)
		for _, v := range odd {
			seen := map[string]bool{}
			with := map[string]any{"categories": v, "schema": v, "default": v}
			for _, p := range spec.PortsFor(with).Out {
				if seen[p.Name] || p.Name == "" || p.Name == "error" {
					t.Errorf("%s with %v has the port %q", typ, v, p.Name)
				}
				seen[p.Name] = true
			}
			spec.Check(with)
		}
	}
}

func TestCategoriesMayBeWrittenInThreeWays(t *testing.T) {
	typ := builtin.Catalogue().Lookup("intentRouter")
	if typ == nil || typ.Name != "categorizer" {
		t.Fatalf("intentRouter leads to %v", typ)
	}
	var asked []string
	for _, with := range []any{
		[]any{"a", map[string]any{"name": "b", "description": "B."}},
		map[string]any{"b": "B.", "a": ""},
	} {
		settings := map[string]any{"categories": with}
		var branches []string
		for _, p := range typ.PortsFor(settings).Out {
			if p.Branch {
				branches = append(branches, p.Name)
			}
		}
		if !reflect.DeepEqual(branches, []string{"a", "b"}) {
			t.Errorf("%v gives the branches %q", with, branches)
		}
		r := weirtest.Node(t, builtin.Catalogue().Type("categorizer"), weirtest.Case{
			With: settings, In: map[string]any{"message": "x"}, Script: weirtest.Says(`{"category": "b"}`),
		})
		if r.Outputs["category"] != "b" {
			t.Fatalf("%v: %v, %v", with, r.Outputs, r.Error)
		}
		asked = append(asked, r.Requests[0].System)
	}
	if asked[0] != asked[1] || !strings.Contains(asked[0], "\n- b: B.") {
		t.Errorf("the instructions differ or lack the description: %q", asked)
	}
}

func TestInvalidCategoryNamesAreRejectedAtLoad(t *testing.T) {
	for with, want := range map[string]string{
		"categories: [a, a]":                "twice",
		"categories: [category]":            `"category" cannot be`,
		"categories: [{name: context}]":     `"context" cannot be`,
		`categories: ["two\nlines"]`:        `"two\nlines" cannot be`,
		`categories: [""]`:                  `"" cannot be`,
		"categories: [a], default: b":       `"b" is none of`,
		"categories: []":                    "categories",
		"categories: {a: [b]}":              "categories",
		"default: b":                        "categories",
		"categories: [a], confidence: high": "confidence",
	} {
		_, err := flow.Parse("flow.yaml", []byte("weir: 1\nname: bad\nnodes:\n  route: {type: categorizer, with: {"+with+"}}\n"), builtin.Catalogue())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", with, err, want)
		}
	}
}

func TestExtractHasAPortForEachPropertyThatCanHaveOne(t *testing.T) {
	schema := map[string]any{"type": "object", "properties": map[string]any{
		"name": map[string]any{"type": "string"}, "age": map[string]any{"type": "integer"}, "tags": map[string]any{"type": "array"},
		"rich": map[string]any{"type": "boolean"}, "home": map[string]any{"type": "object"}, "odd": map[string]any{"type": []any{"string", "null"}},
		"usage": map[string]any{"type": "string"}, "a.b": map[string]any{}, "a\nb": map[string]any{},
	}}
	with := map[string]any{"schema": schema}
	types := map[string]flow.PortType{}
	for _, p := range builtin.Catalogue().Lookup("extract").PortsFor(with).Out {
		types[p.Name] = p.Type
	}
	want := map[string]flow.PortType{
		"name": flow.TypeText, "age": flow.TypeNumber, "tags": flow.TypeList, "rich": flow.TypeBool, "home": flow.TypeObject,
		"odd": flow.TypeAny, "usage": flow.TypeObject, "value": flow.TypeAny, "limit": flow.TypeObject, "context": flow.TypeContext,
		"a.b": flow.TypeAny,
	}
	if !reflect.DeepEqual(types, want) {
		t.Errorf("the ports are %v, expected %v", types, want)
	}
	r := weirtest.Node(t, builtin.Catalogue().Type("extract"), weirtest.Case{
		With: with, In: map[string]any{"message": "Ann is 7."},
		Script: weirtest.Says(`{"name": "Ann", "age": 7, "odd": null, "usage": "none", "a.b": 1, "more": true}`),
	})
	for port, want := range map[string]any{"name": "Ann", "age": int64(7), "tags": nil, "more": nil, "a.b": int64(1)} {
		if got := r.Outputs[port]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, expected %v (%v)", port, got, want, r.Error)
		}
	}
	if _, there := r.Outputs["tags"]; there {
		t.Error("a property that the data does not have has a value")
	}
	if v, _ := r.Outputs["value"].(map[string]any); v["usage"] != "none" || v["a.b"] != int64(1) {
		t.Errorf("the value is %v", v)
	}
}

func TestLongSummaryInputIsSplitBeforeAnyCall(t *testing.T) {
	var list []any
	for range 40 {
		list = append(list, map[string]any{"role": "user", "text": strings.Repeat("a weir is a low dam ", 20)})
	}
	r := weirtest.Node(t, builtin.Catalogue().Type("summarize"), weirtest.Case{
		With:   map[string]any{"maxTokens": 50, "budget": map[string]any{"window": 3000, "reserve": 500}},
		In:     map[string]any{"messages": list},
		Script: weirtest.Says("one", "two", "one and two", "three", "four", "three and four", "all of it"),
	})
	if r.Outputs["text"] != "all of it" || len(r.Requests) != 7 {
		t.Fatalf("the summary is %v after %d calls: %v", r.Outputs["text"], len(r.Requests), r.Error)
	}
	if got := r.Requests[6].Messages[0].Text; !strings.Contains(got, "<text>\none and two\nthree and four\n</text>") {
		t.Errorf("the last call was given %q", got)
	}
	weirs := 0
	for _, i := range []int{0, 1, 3, 4} {
		weirs += strings.Count(r.Requests[i].Messages[0].Text, "weir")
	}
	if weirs != 40*20 {
		t.Errorf("the parts hold %d of %d weirs", weirs, 40*20)
	}
	if u, _ := r.Outputs["usage"].(map[string]any); u["calls"] != int64(7) {
		t.Errorf("the usage is %v", u)
	}
	// 40 messages of 400 characters, each after "user: ", in four parts.
	if got, want := r.Outputs["reduction"], (map[string]any{"from": int64(40 * 406), "to": int64(9), "parts": int64(4), "cut": int64(0)}); !reflect.DeepEqual(got, want) {
		t.Errorf("the reduction is %v, want %v", got, want)
	}
	one := weirtest.Node(t, builtin.Catalogue().Type("summarize"), weirtest.Case{
		With:   map[string]any{"maxTokens": 50, "budget": map[string]any{"window": 1000, "reserve": 500}},
		In:     map[string]any{"text": strings.Repeat("weir ", 800)},
		Script: weirtest.Says(slices.Repeat([]string{"part"}, 15)...),
	})
	weirs = 0
	for _, req := range one.Requests {
		weirs += strings.Count(req.Messages[0].Text, "weir")
	}
	if one.Outputs["text"] != "part" || weirs != 800 {
		t.Errorf("a text that is too long: %v after %d calls with %d of 800 weirs: %v", one.Outputs["text"], len(one.Requests), weirs, one.Error)
	}
}

func TestSummaryLengthIsBoundedAndEmptyIsAnError(t *testing.T) {
	typ, in := builtin.Catalogue().Type("summarize"), map[string]any{"text": "x"}
	for with, want := range map[string]int{"": 500, "maxTokens": 40, "maxOutput": 40} {
		settings := map[string]any{}
		if with != "" {
			settings[with] = 40
		}
		r := weirtest.Node(t, typ, weirtest.Case{With: settings, In: in, Script: weirtest.Says("s")})
		if r.Outputs["text"] != "s" || r.Requests[0].MaxOutput != want {
			t.Errorf("%q: the limit of output is %d, expected %d: %v", with, r.Requests[0].MaxOutput, want, r.Error)
		}
	}
	r := weirtest.Node(t, typ, weirtest.Case{In: in, Script: weirtest.Says("  ", "<think>hm")})
	if r.Error == nil || r.Error.Code != engine.CodeModelAnswer {
		t.Errorf("nothing was written and the run %s: %v", r.Status, r.Error)
	}
	r = weirtest.Node(t, typ, weirtest.Case{In: in, Script: weirtest.Says("<think>hm</think>\nIn short.")})
	if r.Outputs["text"] != "In short." {
		t.Errorf("the summary is %q: %v", r.Outputs["text"], r.Error)
	}
}

func TestAgentTraceCanBeSummarised(t *testing.T) {
	var l effectLog
	text := strings.Replace(toolFlow("agent", ""), "outputs:", "  minutes: {type: summarize, in: {messages: \"{{ ask.trace }}\"}}\noutputs:", 1)
	text = strings.Replace(text, "outputs: {", `outputs: {minutes: "{{ minutes.text }}", `, 1)
	r := weirtest.Flow(t, text, weirtest.Case{
		Tools:  []*tool.Tool{l.tool("search", "")},
		Script: []weirtest.Turn{weirtest.Calls("search", map[string]any{"q": "weir"}), weirtest.Says("found")[0], weirtest.Says("It searched.")[0]},
	})
	if r.Outputs["minutes"] != "It searched." {
		t.Fatalf("the outputs are %v: %v", r.Outputs, r.Error)
	}
	want := "assistant calls search {\"q\":\"weir\"}\nresult of search: search done\nassistant: found\n"
	if got := r.Requests[2].Messages[0].Text; !strings.Contains(got, want) {
		t.Errorf("the model was given %q, expected %q in it", got, want)
	}
}
