package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// bearer adds a token to requests.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects the SDK's client, which answers questions with ask, or with nil leaves them
// to the test.
func connect(t *testing.T, p *servertest.Process, token string, ask func(*sdk.ElicitRequest) *sdk.ElicitResult) *sdk.ClientSession {
	t.Helper()
	o := &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) { return ask(r), nil }}
	o.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: ask == nil}
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	s, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: p.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the server may be gone
	return s
}

func textOf(r *sdk.CallToolResult) string {
	if r == nil || len(r.Content) == 0 {
		return ""
	}
	x, _ := r.Content[0].(*sdk.TextContent)
	return x.Text
}

func call(t *testing.T, s *sdk.ClientSession, p *sdk.CallToolParams) *sdk.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAFlowIsATool(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{})
	asked := ""
	s := connect(t, p, "", func(r *sdk.ElicitRequest) *sdk.ElicitResult {
		asked = r.Params.Message
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}
	})
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names, schema := "", ""
	for _, x := range tools.Tools {
		names += x.Name + " "
		if x.Name == "echo" {
			b, _ := json.Marshal(x.InputSchema)
			schema = string(b)
		}
	}
	if !strings.Contains(names, "echo ") || !strings.Contains(names, "weir_explain_run weir_fork_run") || !strings.Contains(schema, `"required":["text"]`) {
		t.Errorf("tools %s, schema %s", names, schema)
	}
	r := call(t, s, &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi", "count": 2}})
	if o, _ := r.StructuredContent.(map[string]any); o["text"] != "hi 2" || o["count"] != 2.0 || r.IsError {
		t.Errorf("%+v", r)
	}
	if r = call(t, s, &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"count": 2}}); !r.IsError || !strings.HasPrefix(textOf(r), "input_invalid: ") {
		t.Errorf("a missing input: %+v %s", r, textOf(r))
	}
	if r = call(t, s, &sdk.CallToolParams{Name: "test_error_handling"}); !r.IsError || !strings.HasPrefix(textOf(r), "no_berth: ") {
		t.Errorf("a flow that fails: %+v %s", r, textOf(r))
	}
	r = call(t, s, &sdk.CallToolParams{Name: "test_input_required_result_elicitation"})
	if textOf(r) != "Hello, Ada!" || asked != "What is your user_name?" {
		t.Errorf("asked %q, then %q", asked, textOf(r))
	}
}

func TestASignedStateIsAcceptedOnceAndOnlyFromItsCaller(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{Server: server.Options{RequireToken: true}})
	scopes := []server.Scope{server.Read, server.Start, server.Answer}
	ada, bob := connect(t, p, p.Token("ada", scopes...), nil), connect(t, p, p.Token("bob", scopes...), nil)
	const tool = "test_input_required_result_elicitation"
	first := call(t, ada, &sdk.CallToolParams{Name: tool})
	if !first.NeedsInput() || first.InputRequests["user_name"] == nil || first.RequestState == "" {
		t.Fatalf("%+v", first)
	}
	answer := func(name string) sdk.InputResponseMap {
		return sdk.InputResponseMap{"user_name": &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}}
	}
	for what, x := range map[string]struct {
		s *sdk.ClientSession
		p sdk.CallToolParams
	}{
		"another caller":    {bob, sdk.CallToolParams{Name: tool, RequestState: first.RequestState, InputResponses: answer("Eve")}},
		"another tool":      {ada, sdk.CallToolParams{Name: "test_input_required_result_tampered_state", RequestState: first.RequestState, InputResponses: answer("Eve")}},
		"another argument":  {ada, sdk.CallToolParams{Name: tool, Arguments: map[string]any{"x": 1}, RequestState: first.RequestState, InputResponses: answer("Eve")}},
		"a changed content": {ada, sdk.CallToolParams{Name: tool, RequestState: "e30" + first.RequestState[strings.Index(first.RequestState, "."):], InputResponses: answer("Eve")}},
		"a changed sum":     {ada, sdk.CallToolParams{Name: tool, RequestState: first.RequestState[:len(first.RequestState)-2] + "00", InputResponses: answer("Eve")}},
	} {
		if r, err := x.s.CallTool(t.Context(), &x.p); err == nil || !strings.Contains(err.Error(), "requestState") {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
	starter := connect(t, p, p.Token("ada", server.Read, server.Start), nil)
	if r := call(t, starter, &sdk.CallToolParams{Name: tool}); r.NeedsInput() || !strings.Contains(textOf(r), "waits for") {
		t.Errorf("a token that may not answer is asked: %+v", r)
	}
	if r, err := starter.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, RequestState: first.RequestState, InputResponses: answer("Eve")}); err == nil && !r.IsError {
		t.Errorf("a token that may not answer has answered: %+v", r)
	}
	unfit := sdk.InputResponseMap{"user_name": &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": 3}}}
	if r := call(t, ada, &sdk.CallToolParams{Name: tool, RequestState: first.RequestState, InputResponses: unfit}); !r.IsError {
		t.Errorf("an answer that does not fit: %+v", r)
	}
	next := call(t, ada, &sdk.CallToolParams{Name: tool})
	for range 2 {
		r := call(t, ada, &sdk.CallToolParams{Name: tool, RequestState: next.RequestState, InputResponses: answer("Ada")})
		if textOf(r) != "Hello, Ada!" {
			t.Errorf("%+v %s", r, textOf(r))
		}
	}
	if r := call(t, ada, &sdk.CallToolParams{Name: tool, RequestState: next.RequestState, InputResponses: answer("Eve")}); !r.IsError || !strings.HasPrefix(textOf(r), "request_reused") {
		t.Errorf("another answer: %+v %s", r, textOf(r))
	}
	third := call(t, ada, &sdk.CallToolParams{Name: tool})
	declined := sdk.InputResponseMap{"user_name": &sdk.ElicitResult{Action: "decline"}}
	if r := call(t, ada, &sdk.CallToolParams{Name: tool, RequestState: third.RequestState, InputResponses: declined}); !r.IsError || !strings.Contains(textOf(r), "cancelled") {
		t.Errorf("declined: %+v %s", r, textOf(r))
	}
}

func TestRunsAreToolsOfTheirUser(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{Server: server.Options{RequireToken: true}})
	ada := connect(t, p, p.Token("ada", server.Read, server.Start, server.Answer), nil)
	reader := connect(t, p, p.Token("ada", server.Read), nil)
	bob := connect(t, p, p.Token("bob", server.Read, server.Start, server.Answer), nil)
	made := call(t, ada, &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}})
	run, _ := made.Meta["weir/run"].(string)
	waits := call(t, ada, &sdk.CallToolParams{Name: "test_input_required_result_elicitation"})
	paused, _ := waits.Meta["weir/run"].(string)
	one := func(run string) map[string]any { return map[string]any{"run": run} }
	if text := textOf(call(t, reader, &sdk.CallToolParams{Name: "weir_list_runs", Arguments: map[string]any{"status": "completed"}})); !strings.Contains(text, run) || strings.Contains(text, paused) {
		t.Error(text)
	}
	if text := textOf(call(t, reader, &sdk.CallToolParams{Name: "weir_show_run", Arguments: one(run)})); !strings.Contains(text, `"text":"hi 1"`) {
		t.Error(text)
	}
	if text := textOf(call(t, reader, &sdk.CallToolParams{Name: "weir_explain_run", Arguments: one(run)})); !strings.Contains(text, `"say"`) {
		t.Error(text)
	}
	forked := textOf(call(t, ada, &sdk.CallToolParams{Name: "weir_fork_run", Arguments: map[string]any{"run": run, "inputs": map[string]any{"text": "bye"}}}))
	if !strings.Contains(forked, `"text":"bye 1"`) {
		t.Error(forked)
	}
	answered := textOf(call(t, ada, &sdk.CallToolParams{Name: "weir_answer_run", Arguments: map[string]any{"run": paused, "question": "user_name:ask#1", "value": map[string]any{"name": "Ada"}}}))
	if !strings.Contains(answered, "Hello, Ada!") {
		t.Error(answered)
	}
	for _, name := range []string{"weir_show_run", "weir_explain_run", "weir_fork_run", "weir_answer_run"} {
		a := map[string]any{"run": run, "question": "x", "value": 1}
		foreign := call(t, bob, &sdk.CallToolParams{Name: name, Arguments: a})
		a["run"] = "unknown"
		unknown := call(t, bob, &sdk.CallToolParams{Name: name, Arguments: a})
		if !foreign.IsError || strings.ReplaceAll(textOf(foreign), run, "unknown") != textOf(unknown) {
			t.Errorf("%s of another: %s; of nobody: %s", name, textOf(foreign), textOf(unknown))
		}
	}
	if text := textOf(call(t, bob, &sdk.CallToolParams{Name: "weir_list_runs"})); strings.Contains(text, run) {
		t.Error(text)
	}
	for _, name := range []string{"echo", "weir_fork_run", "weir_answer_run"} {
		if r, err := reader.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: one(run)}); err == nil {
			t.Errorf("%s without its scope: %+v", name, r)
		}
	}
}

// TestNoFlowTakesTheToolOfAnotherOrBreaksTheList has flows whose tool names would be the same,
// and one with a schema that the SDK refuses.
func TestNoFlowTakesTheToolOfAnotherOrBreaksTheList(t *testing.T) {
	t.Parallel()
	says := func(name, schema string) string {
		return "weir: 1\nname: " + name + "\ninputs: {m: {type: text" + schema + "}}\nnodes: {a: {type: template, with: {text: \"I am " + name + "\"}}}\noutputs: {text: \"{{ a.text }}\"}\n"
	}
	p := open(t, servertest.Options{Flows: map[string]string{
		"a.yaml": says("my ask", ""), "b.yaml": says("my_ask", ""), "c.yaml": says("odd", `, schema: {type: string, "x-mcp-header": "bad header:"}`),
	}})
	s := connect(t, p, "", nil)
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	flows := map[string]string{}
	for _, x := range tools.Tools {
		if x.Title != "" {
			flows[x.Title] = x.Name
		}
	}
	if flows["my ask"] == flows["my_ask"] || flows["odd"] != "" {
		t.Errorf("the tools are %v", flows)
	}
	for _, flow := range []string{"my ask", "my_ask"} {
		if got := textOf(call(t, s, &sdk.CallToolParams{Name: flows[flow]})); got != "I am "+flow {
			t.Errorf("tool %s of flow %s: %s", flows[flow], flow, got)
		}
	}
}
