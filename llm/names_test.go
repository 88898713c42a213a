package llm_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// nameBounds returns those of every API: the strictest of names, and of names that must
// not begin with a digit.
func nameBounds() map[string]llm.NameRules {
	name := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	return map[string]llm.NameRules{
		"chat":      {Tool: name, ID: regexp.MustCompile(`^[!-~]{1,40}$`), Prefix: "call_"},
		"anthropic": {Tool: name, ID: name, Prefix: "toolu_"},
		"gemini":    {Tool: regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`), ID: regexp.MustCompile(`^[!-~]{1,64}$`), Prefix: "call_"},
	}
}

// oddName returns a name that a model may write: any text, one that looks like one made
// here, and one that only differs from others in what is replaced.
func oddName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(), rapid.StringMatching(`[a-c._ -]{0,4}`), rapid.StringMatching(`[a-z.]{60,70}`),
		rapid.SampledFrom([]string{"", " ", "functions.echo", "functions_echo", "functions_echo_aee78e34", "9.a", "-", "été", "a\x00b", "a\xffb"}),
	)
}

func oddHistory(t *rapid.T) []convo.Message {
	var out []convo.Message
	for range rapid.IntRange(0, 5).Draw(t, "turns") {
		m := convo.Message{Role: convo.Assistant}
		var results []convo.Message
		for range rapid.IntRange(0, 4).Draw(t, "calls") {
			id := rapid.OneOf(rapid.StringMatching(`[ab]{0,2}`), rapid.String(), rapid.StringMatching(`[a-z]{39,70}`)).Draw(t, "id")
			m.Calls = append(m.Calls, convo.Call{ID: id, Name: oddName().Draw(t, "name"), Arguments: rapid.String().Draw(t, "arguments")})
			results = append(results, convo.Message{Role: convo.Tool, CallID: id, Text: "r"})
		}
		out = append(append(out, m), results...)
	}
	return out
}

func TestToolNamesInRequestsAreValidDistinctStableAndMappedBack(t *testing.T) {
	t.Parallel()
	for api, b := range nameBounds() {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { checkNames(t, b) })
		})
	}
}

// checkNames checks the names in one request.
func checkNames(t *rapid.T, b llm.NameRules) {
	req := &llm.Request{Messages: oddHistory(t)}
	for _, name := range rapid.SliceOfNDistinct(oddName(), 0, 5, rapid.ID).Draw(t, "tools") {
		req.Tools = append(req.Tools, llm.Tool{Name: name})
	}
	sent, names := b.Rename(req, 0)
	recorded := map[string]string{}
	check := func(name, as string) {
		if !b.Tool.MatchString(as) {
			t.Fatalf("%q is sent as %q, which is no name", name, as)
		}
		if other, is := recorded[as]; is && other != name {
			t.Fatalf("%q and %q are both sent as %q", name, other, as)
		}
		recorded[as] = name
		back := names.Answer(&llm.Response{Message: convo.Message{Calls: []convo.Call{{Name: as}}}})
		if got := back.Message.Calls[0].Name; got != name {
			t.Fatalf("%q is sent as %q and comes back as %q", name, as, got)
		}
	}
	for i := range req.Tools {
		check(req.Tools[i].Name, sent.Tools[i].Name)
	}
	checkCalls(t, b, req.Messages, sent.Messages, check)
	// The same history with more at its end begins with the same.
	req.Messages = append(slices.Clip(req.Messages), oddHistory(t)...)
	longer, _ := b.Rename(req, 0)
	for i := range sent.Messages {
		if !longer.Messages[i].Equal(sent.Messages[i]) {
			t.Fatalf("message %d was sent as %+v, later as %+v", i, sent.Messages[i], longer.Messages[i])
		}
	}
}

// checkCalls checks that ids are valid and distinct in all of a history, and that
// each result answers the call in its place.
func checkCalls(t *rapid.T, b llm.NameRules, was, sent []convo.Message, name func(name, as string)) {
	used := map[string]bool{}
	var open []string
	for i, m := range sent {
		if m.Role == convo.Tool {
			at := slices.Index(open, m.CallID)
			if at < 0 {
				t.Fatalf("message %d answers %q; open are %q", i, m.CallID, open)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		open = nil
		for k, c := range m.Calls {
			name(was[i].Calls[k].Name, c.Name)
			if !b.ID.MatchString(c.ID) || used[c.ID] {
				t.Fatalf("message %d: the id %q is sent as %q, used before: %v", i, was[i].Calls[k].ID, c.ID, used[c.ID])
			}
			used[c.ID] = true
			open = append(open, c.ID)
		}
	}
}

func TestArgumentsAreAnObjectThatEveryParserReads(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		"":                       `{}`,
		" \n":                    `{}`,
		`{"a": 1,  "b":[]}`:      `{"a": 1,  "b":[]}`,
		` {"a":1} `:              `{"a":1}`,
		`{"a":1,"a":2}`:          `{"a":2}`,
		`{"a":1,"\u0061":2}`:     `{"a":2}`,
		`{"a":[{"b":1,"b":2}]}`:  `{"a":[{"b":2}]}`,
		`{"a":{"a":1},"b":"a"}`:  `{"a":{"a":1},"b":"a"}`,
		`{"a":"\ud800"}`:         "{\"a\":\"\ufffd\"}",
		`{"a":"\ud83d\ude00"}`:   `{"a":"\ud83d\ude00"}`,
		`{"a":"\\ud800 \n"}`:     `{"a":"\\ud800 \n"}`,
		`{"a":"\udc00"}`:         "{\"a\":\"\ufffd\"}",
		`{"n":9007199254740993}`: `{"n":9007199254740993}`,
		`{"n":1e400}`:            `{"arguments":"{\"n\":1e400}"}`,
		`{"a":NaN}`:              `{"arguments":"{\"a\":NaN}"}`,
		`[1]`:                    `{"arguments":"[1]"}`,
		`null`:                   `{"arguments":"null"}`,
		`"x"`:                    `{"arguments":"\"x\""}`,
		`{"a":1`:                 `{"arguments":"{\"a\":1"}`,
		`{"a":1}{"b":2}`:         `{"arguments":"{\"a\":1}{\"b\":2}"}`,
	} {
		if got := string(llm.NormalizeArguments(arguments)); got != want {
			t.Errorf("%s is sent as %s, want %s", arguments, got, want)
		}
	}
	deep := `{"a":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + "}"
	if got := string(llm.NormalizeArguments(deep)); !strings.HasPrefix(got, `{"arguments":`) {
		t.Errorf("what is nested 81 deep is sent as it is: %s", got)
	}
}
