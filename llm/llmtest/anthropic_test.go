package llmtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
)

// The parts that bodies of the Messages API are made of.
const (
	userHi   = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
	useA     = `{"type":"tool_use","id":"a","name":"ping","input":{}}`
	resultA  = `{"type":"tool_result","tool_use_id":"a","content":"pong"}`
	callA    = `{"role":"assistant","content":[` + useA + `]}`
	answerA  = `{"role":"user","content":[` + resultA + `]}`
	pingTool = `{"name":"ping","input_schema":{"type":"object"}}`
	thought  = `{"type":"thinking","thinking":"hm","signature":"s"}`
	ephemera = `"cache_control":{"type":"ephemeral"}`
	budget   = `"thinking":{"type":"enabled","budget_tokens":1024}`
)

// claude returns a body of a model, with messages and more fields.
func claude(model, messages string, more ...string) string {
	fields := append([]string{`"model":"` + model + `"`, `"max_tokens":4096`, `"messages":[` + messages + `]`}, more...)
	return `{` + strings.Join(fields, ",") + `}`
}

// oldClaude returns a body of a model of 2025, newClaude one of a model of 2026.
func oldClaude(messages string, more ...string) string {
	return claude("claude-sonnet-4-5-20250929", messages, more...)
}

func newClaude(messages string, more ...string) string {
	return claude("claude-opus-4-8", messages, more...)
}

// says returns a message of one role with blocks.
func says(role string, blocks ...string) string {
	return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
}

func words(text string) string { return `{"type":"text","text":` + encode(text) + `}` }

func withTools(messages string, more ...string) string {
	return oldClaude(messages, append(more, `"tools":[`+pingTool+`]`)...)
}

func answerAs(schema string) string {
	return `"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}`
}

func TestAnthropicTakesWhatItsReferenceAllows(t *testing.T) {
	t.Parallel()
	image := func(mime, data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + mime + `","data":"` + data + `"}}`
	}
	for name, body := range map[string]string{
		"a text for content":         oldClaude(`{"role":"user","content":"hi"}`),
		"a text for the system":      oldClaude(userHi, `"system":"Be brief."`, `"temperature":0`, `"stream":true`),
		"blocks for the system":      oldClaude(userHi, `"system":[`+words("Be brief.")+`]`),
		"two messages of a role":     oldClaude(userHi + `,` + userHi),
		"a prefill":                  oldClaude(userHi + `,` + says("assistant", words("So"))),
		"a call and its result":      withTools(userHi + `,` + callA + `,` + answerA),
		"a result and words":         withTools(userHi + `,` + callA + `,` + says("user", resultA, words("and?"))),
		"results in two messages":    withTools(userHi + `,` + callA + `,` + answerA + `,` + userHi),
		"a choice of each kind":      withTools(userHi, `"tool_choice":{"type":"any","disable_parallel_tool_use":true}`),
		"a named choice":             withTools(userHi, `"tool_choice":{"type":"tool","name":"ping"}`),
		"four marks":                 withTools(userHi, `"system":[`+strings.Repeat(`{"type":"text","text":"x",`+ephemera+`},`, 3)+`{"type":"text","text":"x",`+ephemera+`}]`),
		"thinking with a budget":     oldClaude(userHi, budget, `"temperature":1`),
		"thinking in a turn":         withTools(userHi+`,`+says("assistant", thought, words("so"), useA)+`,`+answerA, budget),
		"redacted thinking":          withTools(userHi+`,`+says("assistant", `{"type":"redacted_thinking","data":"x"}`, useA)+`,`+answerA, budget),
		"adaptive thinking":          newClaude(userHi, `"thinking":{"type":"adaptive","display":"summarized"}`, `"output_config":{"effort":"xhigh"}`),
		"adaptive in a turn without": newClaude(userHi+`,`+callA+`,`+answerA, `"thinking":{"type":"adaptive"}`, `"tools":[`+pingTool+`]`),
		"an answer by a schema":      oldClaude(userHi, answerAs(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"array","items":{"type":"string"},"minItems":1}}}`)),
		"an image":                   oldClaude(says("user", image("image/webp", "AAAA"))),
		"an image by its address":    oldClaude(says("user", `{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`)),
		"a document":                 oldClaude(says("user", `{"type":"document","title":"t","source":{"type":"text","media_type":"text/plain","data":"x"}}`)),
		"a failed result":            withTools(userHi + `,` + callA + `,` + says("user", `{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"}`)),
		"a model of somebody else":   claude("local", userHi, budget, `"temperature":1`),
	} {
		if problems := CheckAnthropic([]byte(body)); len(problems) > 0 {
			t.Errorf("%s: %q\n%s", name, problems, body)
		}
	}
}

// refusedBodies are bodies that break one rule each, and a word of its name.
func refusedBodies() map[string][2]string {
	object := `{"type":"object","additionalProperties":false,"properties":{"a":`
	twoTools := `"tools":[` + pingTool + `,` + pingTool + `]`
	return map[string][2]string{
		"no JSON":                            {`{"model"`, "not JSON"},
		"no model":                           {`{"max_tokens":1,"messages":[` + userHi + `]}`, "model"},
		"no limit":                           {`{"model":"claude-opus-4-8","messages":[` + userHi + `]}`, "max_tokens"},
		"a limit of nothing":                 {strings.Replace(oldClaude(userHi), "4096", "0", 1), "max_tokens"},
		"no messages":                        {oldClaude(""), "messages"},
		"an unknown parameter":               {oldClaude(userHi, `"input":"x"`), "input"},
		"a system message":                   {oldClaude(`{"role":"system","content":"x"},` + userHi), "role"},
		"a tool message":                     {oldClaude(userHi + `,{"role":"tool","content":"x"}`), "role"},
		"an unknown field of a message":      {oldClaude(`{"role":"user","content":"x","id":"1"}`), "id"},
		"an unknown field of a block":        {oldClaude(says("user", `{"type":"text","text":"x","id":"1"}`)), "id"},
		"the assistant first":                {oldClaude(says("assistant", words("x")) + `,` + userHi), "first message"},
		"no content":                         {oldClaude(`{"role":"user","content":[]}`), "content"},
		"an empty text":                      {oldClaude(says("user", words(""))), "text"},
		"a blank text":                       {oldClaude(says("user", words("a"), words(" \n"))), "non-whitespace"},
		"a blank text of the system":         {oldClaude(userHi, `"system":[`+words("\t")+`]`), "non-whitespace"},
		"a blank text in a result":           {withTools(userHi + `,` + callA + `,` + says("user", `{"type":"tool_result","tool_use_id":"a","content":[`+words(" ")+`]}`)), "non-whitespace"},
		"white space at the end":             {oldClaude(userHi + `,` + says("assistant", words("So "))), "trailing"},
		"a prefill of a newer model":         {newClaude(userHi + `,` + says("assistant", words("So"))), "prefill"},
		"a prefill of an answer by a schema": {oldClaude(userHi+`,`+says("assistant", words("{")), answerAs(object+`{"type":"string"}}}`)), "incompatible"},
		"a prefill beside thinking":          {oldClaude(userHi+`,`+says("assistant", words("So")), budget), "pre-filled"},
		"a call of the user":                 {withTools(says("user", useA)), "type"},
		"a result of the assistant":          {withTools(userHi + `,` + says("assistant", resultA)), "type"},
		"an image of the assistant":          {oldClaude(userHi + `,` + says("assistant", `{"type":"image","source":{"type":"url","url":"https://x"}}`)), "type"},
		"a call without result":              {withTools(userHi + `,` + callA + `,` + userHi), "without `tool_result`"},
		"a call without anything":            {withTools(userHi + `,` + callA), "no `tool_result`"},
		"one result of two":                  {withTools(userHi + `,` + says("assistant", useA, strings.Replace(useA, `"a"`, `"b"`, 1)) + `,` + answerA), "without `tool_result`"},
		"a result of no call":                {withTools(says("user", resultA)), "unexpected"},
		"a result given twice":               {withTools(userHi + `,` + callA + `,` + says("user", resultA, resultA)), "unexpected"},
		"a result a turn late":               {withTools(userHi + `,` + callA + `,` + userHi + `,` + says("assistant", words("x")) + `,` + answerA), "unexpected"},
		"words before a result":              {withTools(userHi + `,` + callA + `,` + says("user", words("x"), resultA)), "come first"},
		"two calls of an id":                 {withTools(userHi + `,` + callA + `,` + answerA + `,` + callA + `,` + answerA), "unique"},
		"an id with other letters":           {withTools(strings.ReplaceAll(userHi+`,`+callA+`,`+answerA, `"a"`, `"a.1"`)), "pattern"},
		"input that is text":                 {withTools(userHi + `,` + strings.Replace(callA, `{}`, `"{}"`, 1) + `,` + answerA), "input"},
		"calls without tools":                {oldClaude(userHi + `,` + callA + `,` + answerA), "define tools"},
		"a failure without words":            {withTools(userHi + `,` + callA + `,` + says("user", `{"type":"tool_result","tool_use_id":"a","is_error":true}`)), "cannot be empty"},
		"a failure that is an image":         {withTools(userHi + `,` + callA + `,` + says("user", `{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}`)), "type \"text\""},
		"a tool without a proper name":       {oldClaude(userHi, `"tools":[{"name":"a b","input_schema":{"type":"object"}}]`), "pattern"},
		"two tools of a name":                {oldClaude(userHi, twoTools), "two tools"},
		"a tool without a schema":            {oldClaude(userHi, `"tools":[{"name":"a"}]`), "input_schema"},
		"a tool that takes a list":           {oldClaude(userHi, `"tools":[{"name":"a","input_schema":{"type":"array"}}]`), "type"},
		"a tool whose schema is none":        {oldClaude(userHi, `"tools":[{"name":"a","input_schema":{"type":"object","properties":{"x":{"type":"text"}}}}]`), "schema"},
		"a choice without tools":             {oldClaude(userHi, `"tool_choice":{"type":"auto"}`), "tool_choice"},
		"a choice of an unknown tool":        {withTools(userHi, `"tool_choice":{"type":"tool","name":"pong"}`), "not found"},
		"a choice as OpenAI has it":          {withTools(userHi, `"tool_choice":"required"`), "tool_choice"},
		"five marks":                         {oldClaude(says("user", strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x",`+ephemera+`},`, 5), ","))), "maximum of 4"},
		"a mark on a thought":                {withTools(userHi + `,` + says("assistant", strings.Replace(thought, `}`, `,`+ephemera+`}`, 1), useA) + `,` + answerA), "cache_control"},
		"a thought that is not signed":       {oldClaude(userHi + `,` + says("assistant", `{"type":"thinking","thinking":"x","signature":""}`, words("x")) + `,` + userHi), "signature"},
		"a thought at the end":               {oldClaude(userHi + `,` + says("assistant", words("x"), thought) + `,` + userHi), "final block"},
		"a budget that is too small":         {oldClaude(userHi, strings.Replace(budget, "1024", "1023", 1)), "budget_tokens"},
		"a budget beyond the limit":          {oldClaude(userHi, strings.Replace(budget, "1024", "4096", 1)), "greater than"},
		"heat beside thinking":               {oldClaude(userHi, budget, `"temperature":0.5`), "temperature"},
		"top_k beside thinking":              {oldClaude(userHi, budget, `"top_k":5`), "top_k"},
		"thinking and a forced tool":         {withTools(userHi, budget, `"tool_choice":{"type":"any"}`), "forces"},
		"thinking from the middle of a turn": {withTools(userHi+`,`+callA+`,`+answerA, budget), "expected `thinking`"},
		"a budget for a newer model":         {newClaude(userHi, budget), "not supported"},
		"adaptive thinking of an older one":  {oldClaude(userHi, `"thinking":{"type":"adaptive"}`), "adaptive"},
		"an effort of an older model":        {claude("claude-sonnet-4-20250514", userHi, `"output_config":{"effort":"low"}`), "effort"},
		"an effort it does not know":         {claude("claude-opus-4-6", userHi, `"output_config":{"effort":"xhigh"}`), "effort"},
		"heat":                               {oldClaude(userHi, `"temperature":1.1`), "temperature"},
		"any heat of a newer model":          {newClaude(userHi, `"temperature":1`), "not supported"},
		"a schema of an older model":         {claude("claude-3-7-sonnet-latest", userHi, answerAs(object+`{"type":"string"}}}`)), "not supported"},
		"an answer that is open":             {oldClaude(userHi, answerAs(`{"type":"object","properties":{}}`)), "additionalProperties"},
		"an inner object that is open":       {oldClaude(userHi, answerAs(object+`{"type":"object"}}}`)), "additionalProperties"},
		"a keyword it does not know":         {oldClaude(userHi, answerAs(object+`{"type":"string","minLength":1}}}`)), "minLength"},
		"a longer list":                      {oldClaude(userHi, answerAs(object+`{"type":"array","minItems":2}}}`)), "minItems"},
		"an answer that is no object":        {oldClaude(userHi, answerAs(`{"type":"array"}`)), "object"},
		"an image of another type":           {oldClaude(says("user", `{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AAAA"}}`)), "media_type"},
		"data that are not base64":           {oldClaude(says("user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"***"}}`)), "/data"},
		"no data":                            {oldClaude(says("user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}`)), "/data"},
		"a document of another type":         {oldClaude(says("user", `{"type":"document","source":{"type":"base64","media_type":"text/csv","data":"AAAA"}}`)), "media_type"},
		"an address that is none":            {oldClaude(says("user", `{"type":"image","source":{"type":"url","url":"file:///etc"}}`)), "url"},
	}
}

func TestAnthropicRefusesWhatBreaksARule(t *testing.T) {
	t.Parallel()
	for name, c := range refusedBodies() {
		problems := CheckAnthropic([]byte(c[0]))
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c[1]) }) {
			t.Errorf("%s: the problems are %q, want one that says %q\n%s", name, problems, c[1], c[0])
		}
	}
	if problems := CheckAnthropic([]byte(oldClaude(says("user", words(strings.Repeat("a", anthropicBodyLimit)))))); len(problems) == 0 {
		t.Error("a body of more than 32 MB is taken")
	}
}

func TestAnthropicsServerRefusesThoughtsItHasNotSigned(t *testing.T) {
	t.Parallel()
	s := New(t, Turn{Reasoning: "Ping it.", Calls: []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}}, Text("Good."))
	status, answer := postClaude(t, s, withTools(userHi, budget))
	var first struct{ Content []json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &first); err != nil || len(first.Content) != 2 {
		t.Fatalf("%d %v: %s", status, err, answer)
	}
	said := string(first.Content[0])
	for _, sealed := range []string{strings.Replace(said, "Ping", "Pong", 1), strings.Replace(said, "EqoB", "EqoC", 1)} {
		body := withTools(userHi+`,`+says("assistant", sealed, string(first.Content[1]))+`,`+answerA, budget)
		if status, answer := postClaude(t, s, body); status != http.StatusBadRequest || !strings.Contains(answer, "signature") {
			t.Errorf("%s: %d %s", sealed, status, answer)
		}
	}
	if len(s.TakeProblems()) != 2 {
		t.Error("the problems were not recorded")
	}
	body := withTools(userHi+`,`+says("assistant", said, string(first.Content[1]))+`,`+answerA, budget)
	if status, answer := postClaude(t, s, body); status != http.StatusOK {
		t.Errorf("what was given out is refused: %s", answer)
	}
}

func TestAnthropicsStreamHasTheVendorsEventsInOrder(t *testing.T) {
	t.Parallel()
	s := New(t, Turn{Reasoning: "Hm.", Text: "Hello", Piece: 9, Calls: []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}})
	_, answer := postClaude(t, s, withTools(userHi, budget, `"stream":true`))
	events := strings.Split(strings.TrimSpace(answer), "\n\n")
	want := []string{
		"message_start", "content_block_start", "ping", "thinking_delta", "signature_delta", "content_block_stop",
		"content_block_start", "text_delta", "content_block_stop", "content_block_start", "input_json_delta",
		"content_block_stop", "message_delta", "message_stop",
	}
	if len(events) != len(want) {
		t.Fatalf("%d events:\n%s", len(events), answer)
	}
	for n, event := range events {
		if !strings.Contains(event, want[n]) {
			t.Errorf("event %d is %s, want %s", n, event, want[n])
		}
	}
}

func TestAnthropicServerRequiresVersionAndKey(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.APIKey = "k"
	if status, answer := postClaude(t, s, oldClaude(userHi)); status != http.StatusUnauthorized || !strings.Contains(answer, "authentication_error") {
		t.Errorf("without a key: %d %s", status, answer)
	}
	s.APIKey = ""
	if status, answer := send(t, s, "/messages", oldClaude(userHi)); status != http.StatusBadRequest || !strings.Contains(answer, "version") {
		t.Errorf("without a version: %d %s", status, answer)
	}
	s.TakeProblems()
}

// postClaude sends a body to the Messages API and gives the status and answer.
func postClaude(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	return send(t, s, "/messages", body, "Anthropic-Version", "2023-06-01")
}
