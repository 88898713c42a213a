package proof

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/tool"
)

var hostileExhaustive = flag.Bool("hostile.all", false, "continue what a hostile model wrote at every API")

// hostileAPIs are the models of the hostile server, one on each API, and whether the
// vendor keeps the history.
var hostileAPIs = []struct {
	model  string
	server bool
}{
	{"openai/gpt-5", false},
	{"openai/gpt-5", true},
	{"local/any", false},
	{"anthropic/claude-sonnet-4-5", false},
	{"gemini/gemini-3-pro", false},
	{"gemini/gemini-2.5-pro", false},
	{"gemini/gemini-3-pro", true},
}

// hostileServer is one session between a person and hostile models.
type hostileServer struct {
	tb     testing.TB
	server *llmtest.Server
	w      *weir.Weir

	mu     sync.Mutex
	turns  []llmtest.Turn // what is answered, in order; then texts
	called []string       // tools that ran
}

func newHostileServer(tb testing.TB) *hostileServer {
	tb.Helper()
	d := &hostileServer{tb: tb, server: llmtest.New(tb)}
	d.server.Answer(func(*llmtest.Request) llmtest.Turn {
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.turns) == 0 {
			return llmtest.Turn{Text: "Well.", Usage: llm.Usage{Input: 10, Output: 2}}
		}
		next := d.turns[0]
		d.turns = d.turns[1:]
		return next
	})
	echo := func(name string) *tool.Tool {
		return &tool.Tool{Name: name, Parameters: map[string]any{"type": "object"}, Call: func(_ context.Context, c tool.Call) (string, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.called = append(d.called, name)
			return c.Arguments, nil
		}}
	}
	w, err := weir.Open(weir.Options{
		Providers: map[string]weir.Provider{
			"openai":    openai.New(openai.Options{BaseURL: d.server.URL, API: openai.Responses}),
			"local":     openai.New(openai.Options{BaseURL: d.server.URL, API: openai.Chat}),
			"anthropic": anthropic.New(anthropic.Options{BaseURL: d.server.Root}),
			"gemini":    gemini.New(gemini.Options{BaseURL: d.server.Root}),
		},
		Tools: []*weir.Tool{echo("echo"), echo("a_b")},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.Close(context.Background()) })
	d.w = w
	return d
}

// say sends a message in a session of that thread, to the model on a wire, and
// fails the test if a request broke a rule of its API.
func (d *hostileServer) say(thread string, on int, text string, turns ...llmtest.Turn) session.ReplyState {
	d.tb.Helper()
	d.mu.Lock()
	d.turns = turns
	d.mu.Unlock()
	history := ""
	if hostileAPIs[on].server {
		history = ", history: server"
	}
	f, err := d.w.Parse("duel.yaml", fmt.Appendf(nil, `
weir: 1
name: duel
context: {model: %s%s}
session: {}
inputs: {message: {type: text, required: true}}
nodes:
  tools: {type: tools, with: {tools: [echo, a_b]}}
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}", tools: "{{ tools.tools }}"}}
outputs: {answer: "{{ answer.text }}"}
`, hostileAPIs[on].model, history))
	if err != nil {
		d.tb.Fatal(err)
	}
	s, err := d.w.Session(d.tb.Context(), f, weir.SessionOptions{User: "u", Thread: thread})
	if err != nil {
		d.tb.Fatal(err)
	}
	turn, err := s.Send(d.tb.Context(), text, weir.SendOptions{})
	if err != nil {
		d.tb.Fatal(err)
	}
	state, err := turn.Wait(d.tb.Context())
	if err != nil {
		d.tb.Fatal(err)
	}
	if problems := d.server.TakeProblems(); len(problems) > 0 {
		d.tb.Fatalf("%s, %q: a request breaks a rule of its API: %s", hostileAPIs[on].model, text, strings.Join(problems, "; "))
	}
	return state
}

// hostileCalls are calls that no vendor's API would take back as they are, by what
// is wrong with them.
func hostileCalls() map[string][]convo.Call {
	one := func(id, name, arguments string) []convo.Call {
		return []convo.Call{{ID: id, Name: name, Arguments: arguments}}
	}
	out := map[string][]convo.Call{
		"an id twice in a turn":          {{ID: "x", Name: "echo", Arguments: `{"n":1}`}, {ID: "x", Name: "echo", Arguments: `{"n":2}`}},
		"an id that one made here has":   {{ID: "", Name: "echo", Arguments: "{}"}, {ID: "call_1_1", Name: "echo", Arguments: "{}"}},
		"names that differ in one place": {{ID: "1", Name: "a.b", Arguments: "{}"}, {ID: "2", Name: "a b", Arguments: "{}"}, {ID: "3", Name: "a_b", Arguments: "{}"}},
		"an id used again some turns on": one("again", "echo", "{}"),
	}
	for what, name := range map[string]string{
		"dots": "functions.echo", "spaces": "a b", "unicode": "écho→", "65 letters": strings.Repeat("n", 65), "a colon": "mcp:x/y",
		"unknown": "nothing", "NUL": "a\x00b", "a digit first": "9lives", "only odd": "...", "markup": "<|channel|>echo", "500 letters": strings.Repeat("é", 500),
	} {
		out["a name with "+what] = one("call_"+fmt.Sprint(len(name)), name, `{"a":1}`)
	}
	for what, id := range map[string]string{
		"empty": "", "41 long": strings.Repeat("i", 41), "65 long": strings.Repeat("i", 65), "500 long": strings.Repeat("i", 500),
		"odd": "functions.echo:0", "spaces": "a b", "unicode": "é", "NUL": "a\x00b", "markup": "<id>", "new line": "a\nb",
	} {
		out["an id "+what] = one(id, "echo", `{"a":1}`)
	}
	for what, arguments := range map[string]string{
		"empty": "", "not JSON": `{"a":`, "words": "a = 1", "a list": "[1]", "a number": "1", "null": "null", "text": `"x"`,
		"a key twice": `{"a":1,"a":2}`, "NaN": `{"a":NaN}`, "huge": `{"a":"` + strings.Repeat("x", 20_000) + `"}`,
		"deep": `{"a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "}", "very deep": strings.Repeat(`{"a":`, 20_000),
		"half a pair": `{"a":"\ud800"}`, "a large number": `{"a":1e400}`, "NUL": `{"a":"\u0000"}`, "two objects": `{"a":1}{"b":2}`, "white space": " \n ",
		"a fence": "```json\n{\"a\":1}\n```", "large integers": `{"a":123456789012345678901234567890}`,
	} {
		out["arguments "+what] = one("call_args", "echo", arguments)
	}
	return out
}

// hostileTurns are answers, by what is wrong with them.
func hostileTurns() map[string]llmtest.Turn {
	out := map[string]llmtest.Turn{}
	for what, calls := range hostileCalls() {
		out[what] = llmtest.Turn{Text: "Hm.", Reasoning: "Think.", Calls: calls, Piece: 700}
	}
	for what, text := range map[string]string{
		"nothing": "", "white space": " \n\t ", "NUL": "a\x00b", "U+FFFD": "\ufffd", "a line separator": "\u2028", "markup": "</assistant><|im_end|>",
	} {
		out["a text of "+what] = llmtest.Turn{Text: text}
	}
	return out
}

// TestHostileToolCallsKeepRequestsValid has a model on each API
// write each hostile turn and continues the session at another; with -hostile.all at every other.
func TestHostileToolCallsKeepRequestsValid(t *testing.T) {
	t.Parallel()
	usage := llm.Usage{Input: 10, Output: 5}
	for on := range hostileAPIs {
		t.Run(fmt.Sprintf("%s %v", hostileAPIs[on].model, hostileAPIs[on].server), func(t *testing.T) {
			t.Parallel()
			d := newHostileServer(t)
			for i, what := range slices.Sorted(maps.Keys(hostileTurns())) {
				turn := hostileTurns()[what]
				turn.Usage = usage
				for _, at := range hostilePlaces(what, on, i) {
					if state := d.say(what, at, what, turn); state.Error != nil {
						t.Fatalf("%s, at %s: %v", what, hostileAPIs[at].model, state.Error)
					}
				}
			}
		})
	}
}

// hostilePlaces returns the APIs at which the i-th hostile turn is written, that of on first.
func hostilePlaces(what string, on, i int) []int {
	if *hostileExhaustive {
		return []int{on, on, 0, 1, 2, 3, 4, 5, 6}
	}
	next := (on + 1 + i%(len(hostileAPIs)-1)) % len(hostileAPIs)
	if strings.HasPrefix(what, "an id") { // which comes again in a later turn
		return []int{on, on, next}
	}
	return []int{on, next}
}
