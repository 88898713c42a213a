package llm_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// The names of arguments are valid and distinct where they are sent, the same for a call in the
// history, and as declared in the answer.
func TestArgumentNamesAreValidDistinctAndMappedBack(t *testing.T) {
	t.Parallel()
	rules := llm.NameRules{
		Tool: regexp.MustCompile(`^[a-z]+$`), ID: regexp.MustCompile(`^.+$`), Prefix: "call_",
		Argument: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`),
	}
	rapid.Check(t, func(t *rapid.T) { checkArgumentNames(t, rules) })
}

func checkArgumentNames(t *rapid.T, rules llm.NameRules) {
	declared := rapid.SliceOfNDistinct(rapid.OneOf(rapid.StringMatching(`[a-c ._-]{1,3}`), rapid.StringMatching(`.{1,70}`)), 1, 6, rapid.ID).Draw(t, "names")
	properties, required, arguments := map[string]any{}, []any{}, map[string]string{}
	for _, name := range declared {
		properties[name] = map[string]any{"type": "string", "title": name}
		required = append(required, name)
		arguments[name] = "<" + name + ">"
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	req := &llm.Request{
		Tools:    []llm.Tool{{Name: "tool", Parameters: map[string]any{"type": "object", "properties": properties, "required": required}}},
		Messages: []convo.Message{{Role: convo.Assistant, Calls: []convo.Call{{ID: "1", Name: "tool", Arguments: string(text)}}}},
	}
	sent, names := rules.Rename(req, 0)
	as, _ := sent.Tools[0].Parameters["properties"].(map[string]any)
	var inHistory map[string]string
	if err := json.Unmarshal([]byte(sent.Messages[0].Calls[0].Arguments), &inHistory); err != nil {
		t.Fatal(err)
	}
	list, _ := sent.Tools[0].Parameters["required"].([]any)
	if len(as) != len(declared) || len(inHistory) != len(declared) || len(list) != len(declared) {
		t.Fatalf("of %d arguments %d are declared, %d required and %d in the history", len(declared), len(as), len(list), len(inHistory))
	}
	for name, s := range as {
		title, _ := s.(map[string]any)["title"].(string)
		if !rules.Argument.MatchString(name) || rules.Argument.MatchString(title) && title != name {
			t.Fatalf("%q is sent as %q", title, name)
		}
		if inHistory[name] != arguments[title] || !slices.Contains(list, any(name)) {
			t.Fatalf("%q is sent as %q, and the history has %v", title, name, inHistory)
		}
	}
	answer, err := json.Marshal(inHistory)
	if err != nil {
		t.Fatal(err)
	}
	back := names.Answer(&llm.Response{Message: convo.Message{Calls: []convo.Call{{ID: "2", Name: "tool", Arguments: string(answer)}}}})
	var got map[string]string
	if err := json.Unmarshal([]byte(back.Message.Calls[0].Arguments), &got); err != nil || !reflect.DeepEqual(got, arguments) {
		t.Fatalf("the answer has the arguments %v, %v; want %v", got, err, arguments)
	}
	if !maps.Equal(arguments, got) || len(properties) != len(declared) {
		t.Fatal("the request itself was changed")
	}
}

// An API that accepts any name is sent what a tool declares, and text that is no object is sent
// as it is.
func TestArgumentNamesAreNotTranslatedWithoutNeed(t *testing.T) {
	t.Parallel()
	any64 := regexp.MustCompile(`^.{1,64}$`)
	parameters := map[string]any{"type": "object", "properties": map[string]any{"a b": true, "c": true}}
	for _, rules := range []llm.NameRules{{Tool: any64, ID: any64}, {Tool: any64, ID: any64, Argument: any64}} {
		sent, _ := rules.Rename(&llm.Request{Tools: []llm.Tool{{Name: "t", Parameters: parameters}}}, 0)
		if !reflect.DeepEqual(sent.Tools[0].Parameters, parameters) {
			t.Errorf("the parameters are sent as %v", sent.Tools[0].Parameters)
		}
	}
	strict := llm.NameRules{Tool: any64, ID: any64, Argument: regexp.MustCompile(`^[a-z_0-9]+$`)}
	_, names := strict.Rename(&llm.Request{Tools: []llm.Tool{{Name: "t", Parameters: parameters}}}, 0)
	for _, text := range []string{``, `no object`, `[1]`, `{"c":  1}`, `{"a b": 1}`} {
		back := names.Answer(&llm.Response{Message: convo.Message{Calls: []convo.Call{{ID: "1", Name: "t", Arguments: text}}}})
		if got := back.Message.Calls[0].Arguments; got != text {
			t.Errorf("the arguments %q come back as %q", text, got)
		}
	}
}
