package structured_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/llm/structured"
)

// dataSchema is that of extract in the tests.
func dataSchema() map[string]any {
	return map[string]any{
		"type": "object", "required": []any{"amount"}, "additionalProperties": false,
		"properties": map[string]any{
			"amount": map[string]any{"type": "number"},
			"kind":   map[string]any{"type": "string", "enum": []any{"Bill", "order"}},
			"paid":   map[string]any{"type": "boolean"},
			"note":   map[string]any{"type": "string"},
		},
	}
}

func TestStructuredAnswerIsReadOnlyIfUnambiguous(t *testing.T) {
	const fence = "```"
	form, err := structured.Compile(dataSchema())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, want, wrong string }{
		{"plain", `{"amount": 3}`, `{"amount": 3}`, ""},
		{"blanks and lines", "\n\n  {\"amount\": 3}\r\n", `{"amount": 3}`, ""},
		{"a byte order mark", "\uFEFF{\"amount\": 3}", `{"amount": 3}`, ""},
		{"a fence", fence + "json\n{\"amount\": 3}\n" + fence, `{"amount":3}`, ""},
		{"a fence without a language", fence + "\n{\"amount\": 3}\n" + fence, `{"amount":3}`, ""},
		{"a fence in upper case", fence + "JSON\n{\"amount\": 3}\n" + fence, `{"amount":3}`, ""},
		{"nested fences", fence + "markdown\n" + fence + "json\n{\"amount\": 3}\n" + fence + "\n" + fence, `{"amount":3}`, ""},
		{"a fence that is not closed", fence + "json\n{\"amount\": 3}", `{"amount":3}`, ""},
		{"a fence inside of a text", `{"amount": 3, "note": "` + fence + `json {} ` + fence + `"}`, `{"amount": 3, "note": "` + fence + `json {} ` + fence + `"}`, ""},
		{"prose before", `Sure! {"amount": 3}`, `{"amount":3}`, ""},
		{"prose behind", `{"amount": 3} I hope this helps.`, `{"amount":3}`, ""},
		{"the word json before", "json\n{\"amount\": 3}", `{"amount":3}`, ""},
		{"braces in the prose", `The set {a, b} and {x} aside: {"amount": 3}`, `{"amount":3}`, ""},
		{"a footnote in the prose", `As said [1], see [2]: {"amount": 3}`, `{"amount":3}`, ""},
		{"reasoning before", "<think>It is {\"amount\": 4}, no.</think>\n{\"amount\": 3}", `{"amount":3}`, ""},
		{"reasoning whose opening the template has", "It is {\"amount\": 4}, no.</think>{\"amount\": 3}", `{"amount":3}`, ""},
		{"reasoning in another tag", "[THINK]{\"amount\": 4}[/THINK]{\"amount\": 3}", `{"amount":3}`, ""},
		{"reasoning in reasoning", "<think>a<think>b</think>{\"amount\": 4}</think>{\"amount\": 3}", `{"amount":3}`, ""},
		{"a tag inside of a text", `Well: {"amount": 3, "note": "</think><think>"}`, `{"amount":3,"note":"</think><think>"}`, ""},
		{"reasoning without an end", `<think>It is {"amount": 3}`, "", "reasoning does not end"},
		{"the channels of gpt-oss", "<|channel|>analysis<|message|>It is {\"amount\": 4}, no.<|end|><|start|>assistant<|channel|>final<|message|>{\"amount\": 3}<|return|>", `{"amount": 3}`, ""},
		{"a constrained channel", "<|start|>assistant<|channel|>final <|constrain|>json<|message|>{\"amount\": 3}", `{"amount": 3}`, ""},
		{"channels without a final message", "<|channel|>analysis<|message|>What is asked?<|end|>", "", "not JSON"},
		{"a channel inside of a text", `{"amount": 3, "note": "<|channel|>final<|message|>"}`, `{"amount": 3, "note": "<|channel|>final<|message|>"}`, ""},
		{"comments", "{ \"amount\": 3, // in EUR\n/* paid later */ \"note\": \"a // b\" }", `{"amount":3,"note":"a // b"}`, ""},
		{"a comment without an end", "{\"amount\": 3 /* in EUR }", "", "not JSON"},
		{"a comma too many", `{"amount": 3,}`, `{"amount":3}`, ""},
		{"a comma inside of a text", `{"amount": 3, "note": "a,}"}`, `{"amount": 3, "note": "a,}"}`, ""},
		{"a line end inside of a text", "{\"amount\": 3, \"note\": \"a\nb\"}", `{"amount":3,"note":"a\nb"}`, ""},
		{"JSON in a JSON text", `"{\"amount\": 3}"`, `{"amount": 3}`, ""},
		{"an enum in other letters", `{"amount": 3, "kind": " BILL."}`, `{"amount":3,"kind":"Bill"}`, ""},
		{"an enum that is none", `{"amount": 3, "kind": "poem"}`, "", "kind"},
		{"a boolean as a word", `{"amount": 3, "paid": "Yes"}`, `{"amount":3,"paid":true}`, ""},
		{"a member in other letters", `{"Amount": 3}`, `{"amount":3}`, ""},
		{"null for what may be left out", `{"amount": 3, "note": null}`, `{"amount":3}`, ""},
		{"null for what is required", `{"amount": null}`, "", "amount"},
		{"the same value twice", `{"amount": 3} that is {"amount": 3}`, `{"amount":3}`, ""},
		{"two values", `{"amount": 3} or {"amount": 4}`, "", "2 different values"},
		{"one that fits and one that does not", `{"total": 4} {"amount": 3}`, `{"amount":3}`, ""},
		{"a broken object beside a good one", `{"amount": 4 EUR} {"amount": 3}`, "", "not JSON"},
		{"a good object inside of a broken one", `{"result": {"amount": 3}, oops}`, "", "not JSON"},
		{"a good object inside of another", `{"result": {"amount": 3}}`, "", "amount"},
		{"a member twice", `{"amount": 3, "amount": 4}`, "", "twice"},
		{"single quotes", `{'amount': 3}`, "", "not JSON"},
		{"cut off", `{"amount": 3`, "", "not JSON"},
		{"empty", "", "", "empty"},
		{"only blanks", " \n ", "", "empty"},
		{"a refusal", "I cannot help with that.", "", "not JSON"},
		{"a number alone", "3", "", "object"},
		{"a text alone", `"3"`, "", "object"},
		{"a list around it", `[{"amount": 3}]`, "", "object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := form.Read(c.text)
			switch {
			case c.wrong == "" && (err != nil || got != c.want):
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("got %q, %v; want an error with %q", got, err, c.wrong)
			}
		})
	}
}

func TestAValueWithoutBracketsIsReadAsItsSchemaSays(t *testing.T) {
	enum := map[string]any{"type": "string", "enum": []any{"high", "low"}}
	for _, c := range []struct {
		schema     map[string]any
		text, want string
	}{
		{enum, `"high"`, `"high"`},
		{enum, "High", `"high"`},
		{enum, "“high”", `"high"`},
		{enum, "```\nhigh\n```", `"high"`},
		{enum, "It is high.", ""},
		{enum, "high or low", ""},
		{enum, "<think>low</think>high", `"high"`},
		{map[string]any{"type": "integer"}, "42", "42"},
		{map[string]any{"type": "integer"}, "<think>1</think> 42", "42"},
		{map[string]any{"type": "integer"}, "The answer is 42.", ""},
		{map[string]any{"type": "integer"}, "4.5", ""},
		{map[string]any{"type": "boolean"}, "Yes.", "true"},
		{map[string]any{"type": "boolean"}, `"false"`, "false"},
		{map[string]any{"type": "boolean"}, "I think so", ""},
		{map[string]any{"type": "string"}, `"Rhine"`, `"Rhine"`},
		{map[string]any{"type": "string"}, "„Rhine“", `"Rhine"`},
		{map[string]any{"type": "string"}, "It may be the Rhine.", ""},
		{map[string]any{"type": "array"}, "Here: [1, 2]", "[1,2]"},
		{map[string]any{"type": "array"}, "1, 2", ""},
	} {
		form, err := structured.Compile(c.schema)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := form.Read(c.text); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v of %q: got %q, %v; want %q", c.schema, c.text, got, err, c.want)
		}
	}
}

func TestCategoryIsReadInAnyCaseButNotFromASentence(t *testing.T) {
	names := []string{"Billing", "fault", "tech_support"}
	const none, refused = "(none)", "(refused)"
	for text, want := range map[string]string{
		`{"category": "Billing"}`:             "Billing",
		`{"category": "billing"}`:             "Billing",
		`{"Category": " BILLING "}`:           "Billing",
		`{"intent": "billing"}`:               "Billing",
		`{"name": "billing", "why": "fault"}`: refused,
		`"Billing"`:                           "Billing",
		`Billing`:                             "Billing",
		`billing.`:                            "Billing",
		`**Billing**`:                         "Billing",
		"`fault`":                             "fault",
		`„Billing“`:                           "Billing",
		`« fault »`:                           "fault",
		`「fault」`:                             "fault",
		`Category: Billing`:                   "Billing",
		`The answer is: fault.`:               "fault",
		`Tech Support`:                        "tech_support",
		"```json\n{\"category\": \"fault\"}\n```":   "fault",
		"```\nfault\n```":                           "fault",
		`["fault"]`:                                 "fault",
		`["fault", "Billing"]`:                      refused,
		`Sure! {"category": "fault"}`:               "fault",
		"<think>Billing?</think>\nfault":            "fault",
		"Billing?</think>{\"category\": \"fault\"}": "fault",
		"<think>It is Billing":                      refused,
		"\uFEFFfault":                               "fault",
		`1. Billing`:                                "Billing",
		`Answer: 2) fault`:                          "fault",
		`1. Billing 2. fault`:                       refused,
		`3`:                                         refused,
		`\boxed{Billing}.`:                          "Billing",
		`\boxed{\text{fault}}`:                      "fault",
		`\boxed{poem}`:                              refused,
		"<|channel|>analysis<|message|>Billing?<|end|><|start|>assistant<|channel|>final<|message|>fault<|return|>": "fault",
		`It belongs to Billing.`:                        refused,
		`It is not Billing.`:                            refused,
		`Billing or fault`:                              refused,
		`Billing, fault`:                                refused,
		`{"category": "fault"} {"category": "Billing"}`: refused,
		`{"category": "poem"}`:                          refused,
		`poem`:                                          refused,
		`{"category": 2}`:                               refused,
		`{"category": ""}`:                              refused,
		``:                                              refused,
		`I cannot sort this.`:                           refused,
		`none`:                                          none,
		`None of these.`:                                none,
		`{"category": null}`:                            none,
		`{"category": "None"}`:                          none,
		`null`:                                          none,
		`{"category": "none"} {"category": "fault"}`: refused,
	} {
		got, err := structured.Choice(text, "category", names)
		switch {
		case errors.Is(err, structured.ErrNone):
			got = none
		case err != nil:
			got = refused
		}
		if got != want {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
	}
	if got, err := structured.Choice("none", "category", []string{"none", "some"}); got != "none" || err != nil {
		t.Errorf("a category that is called none: %q, %v", got, err)
	}
	if got, err := structured.Choice("ORDER", "category", []string{"Order", "order"}); err == nil {
		t.Errorf("of two names that differ by their letters %q was chosen", got)
	}
}

func TestPlainTextIsWithoutTheReasoningBeforeIt(t *testing.T) {
	for text, want := range map[string]string{
		"A dam.": "A dam.", "<think>hm</think>\nA dam.": "A dam.", "hm</think>A dam.": "A dam.",
		"<think>hm": "", "<thinking>a</thinking><think>b</think> A dam.": "A dam.", "A <think> tag.": "A <think> tag.",
	} {
		if got := structured.Plain(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzReadValueFitsItsSchema(f *testing.F) {
	form, err := structured.Compile(dataSchema())
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{`{"amount": 3,}`, "<think>{", "```json\n{\"amount\":1}\n```", `{"a":{"a":[{"b":1,"b":2}]}}`, "\"{\\\"amount\\\": 3}\"", "[[[[{{{{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := form.Read(text)
		if err == nil {
			if again, err := form.Read(got); err != nil || again != got {
				t.Errorf("%q was read as %q, which reads as %q, %v", text, got, again, err)
			}
		}
		name, err := structured.Choice(text, "category", []string{"a", "b c"})
		if err == nil && name != "a" && name != "b c" {
			t.Errorf("%q was read as the category %q", text, name)
		}
		structured.Plain(text)
	})
}
