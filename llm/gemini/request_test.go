package gemini_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
)

func user(text string) convo.Message  { return convo.Message{Role: convo.User, Text: text} }
func model(text string) convo.Message { return convo.Message{Role: convo.Assistant, Text: text} }

func calls(ids ...string) convo.Message {
	m := convo.Message{Role: convo.Assistant}
	for _, id := range ids {
		m.Calls = append(m.Calls, convo.Call{ID: id, Name: "ping", Arguments: `{"n":1}`})
	}
	return m
}

func result(id, text string) convo.Message {
	return convo.Message{Role: convo.Tool, CallID: id, Text: text}
}

// bodyOf returns the body of a request, which must be valid.
func bodyOf(t *testing.T, req *llm.Request) string {
	t.Helper()
	body, err := gemini.New(gemini.Options{BaseURL: "http://test"}).Body(req)
	if err != nil {
		t.Fatal(err)
	}
	check := llmtest.CheckGemini
	if req.KeepSession {
		check = llmtest.CheckInteraction
	}
	if problems := check(body); len(problems) > 0 {
		t.Errorf("%s\nbreaks %q", body, problems)
	}
	return string(body)
}

func contentsOf(t *testing.T, req *llm.Request) string {
	t.Helper()
	var body struct{ Contents json.RawMessage }
	if err := json.Unmarshal([]byte(bodyOf(t, req)), &body); err != nil {
		t.Fatal(err)
	}
	return string(body.Contents)
}

func TestHistoriesThatTheAPIWouldRefuseAreMadeToFit(t *testing.T) {
	t.Parallel()
	const (
		u = `{"role":"user","parts":[`
		m = `{"role":"model","parts":[`
	)
	for _, c := range []struct {
		name     string
		messages []convo.Message
		want     string
	}{
		{"the model speaks first", []convo.Message{model("Hi."), user("Ho.")}, u + `{"text":"(The conversation begins here.)"}]},` + m + `{"text":"Hi."}]},` + u + `{"text":"Ho."}]}`},
		{"the model speaks last", []convo.Message{user("Hi."), model("Ho.")}, u + `{"text":"Hi."}]},` + m + `{"text":"Ho."}]},` + u + `{"text":"Continue."}]}`},
		{"nobody says anything", []convo.Message{user(""), model("")}, u + `{"text":"(The conversation begins here.)"}]}`},
		{"neighbours of one role", []convo.Message{user("a"), user("b"), model("c"), model(""), model("d"), user("e")}, u + `{"text":"a"},{"text":"b"}]},` + m + `{"text":"c"},{"text":"d"}]},` + u + `{"text":"e"}]}`},
		{"the system in the middle", []convo.Message{{Role: convo.System, Text: "s1"}, user("a"), {Role: convo.System, Text: "s2"}, model("b"), user("c")}, u + `{"text":"a"},{"text":"s2"}]},` + m + `{"text":"b"}]},` + u + `{"text":"c"}]}`},
		{
			"results out of order",
			[]convo.Message{user("a"), calls("x", "y"), result("y", "2"), result("x", "1"), user("b")},
			u + `{"text":"a"}]},` + m + `{"functionCall":{"id":"x","name":"ping","args":{"n":1}}},{"functionCall":{"id":"y","name":"ping","args":{"n":1}}}]},` +
				u + `{"functionResponse":{"id":"x","name":"ping","response":{"output":"1"}}},{"functionResponse":{"id":"y","name":"ping","response":{"output":"2"}}},{"text":"b"}]}`,
		},
		{
			"calls of one id",
			[]convo.Message{user("a"), calls("x", "x"), result("x", "1"), result("x", "2")},
			u + `{"text":"a"}]},` + m + `{"functionCall":{"id":"x","name":"ping","args":{"n":1}}},{"functionCall":{"id":"call_d4a32e6c9b612308fde099431ca82a2c","name":"ping","args":{"n":1}}}]},` +
				u + `{"functionResponse":{"id":"x","name":"ping","response":{"output":"1"}}},{"functionResponse":{"id":"call_d4a32e6c9b612308fde099431ca82a2c","name":"ping","response":{"output":"2"}}}]}`,
		},
		{
			"a failed call that has no arguments and no proper name",
			[]convo.Message{user("a"), {Role: convo.Assistant, Calls: []convo.Call{{ID: "x", Name: "p g", Arguments: "oops"}}}, {Role: convo.Tool, CallID: "x", Text: "No.", Failed: true}},
			u + `{"text":"a"}]},` + m + `{"functionCall":{"id":"x","name":"p_g_d38f56d3","args":{"arguments":"oops"}}}]},` + u + `{"functionResponse":{"id":"x","name":"p_g_d38f56d3","response":{"error":"No."}}}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := &llm.Request{Model: "gemini-2.5-flash", Messages: c.messages}
			got := contentsOf(t, req)
			if !equal(t, got, "["+c.want+"]") {
				t.Errorf("the contents are\n%s\nwant\n[%s]", got, c.want)
			}
			kept := *req
			kept.KeepSession = true
			bodyOf(t, &kept) // valid by its own rules
		})
	}
}

// equal says that two JSON texts are the same value.
func equal(t *testing.T, a, b string) bool {
	t.Helper()
	var av, bv any
	if err := json.Unmarshal([]byte(a), &av); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	if err := json.Unmarshal([]byte(b), &bv); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	x, _ := json.Marshal(av) // they were JSON
	y, _ := json.Marshal(bv)
	return string(x) == string(y)
}

func TestReasoningIsALevelOrABudgetByTheModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ model, reasoning, want, kept string }{
		{"gemini-3-pro-preview", "low", `{"includeThoughts":true,"thinkingLevel":"LOW"}`, `"thinking_level":"low"`},
		{"gemini-3-pro-preview", "none", `{"thinkingLevel":"LOW"}`, `"thinking_summaries":"none"`},
		{"gemini-3-flash", "minimal", `{"includeThoughts":true,"thinkingLevel":"MINIMAL"}`, `"thinking_level":"minimal"`},
		{"gemini-3-flash", "high", `{"includeThoughts":true,"thinkingLevel":"HIGH"}`, `"thinking_level":"high"`},
		{"gemini-2.5-flash", "none", `{"thinkingBudget":0}`, `"thinking_level":"minimal"`},
		{"gemini-2.5-pro", "none", `{"thinkingBudget":128}`, `"thinking_level":"low"`},
		{"gemini-2.5-flash", "medium", `{"includeThoughts":true,"thinkingBudget":8192}`, `"thinking_level":"medium"`},
		{"gemini-2.5-flash", "700", `{"includeThoughts":true,"thinkingBudget":700}`, `"thinking_level":"low"`},
		{"gemini-3-flash", "-1", `{"includeThoughts":true,"thinkingBudget":-1}`, `"thinking_summaries":"auto"`},
		{"gemini-3-flash", "0", `{"thinkingBudget":0}`, `"thinking_summaries":"none"`},
	} {
		req := hello()
		req.Model, req.Reasoning = c.model, c.reasoning
		if body := bodyOf(t, req); !strings.Contains(body, `"thinkingConfig":`+c.want+"}") {
			t.Errorf("%s %s: %s", c.model, c.reasoning, body)
		}
		req.KeepSession = true
		if body := bodyOf(t, req); !strings.Contains(body, c.kept) {
			t.Errorf("%s %s: %s", c.model, c.reasoning, body)
		}
	}
}

func TestSchemaBesideToolsIsInThePromptIfTheModelRefusesIt(t *testing.T) {
	t.Parallel()
	req := hello()
	req.Tools = []llm.Tool{{Name: "ping"}}
	req.Schema = map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"const": "<b>"}}}
	if body := bodyOf(t, req); !strings.Contains(body, "responseJsonSchema") {
		t.Errorf("Gemini 3: %s", body)
	}
	req.Model = "gemini-2.5-flash"
	body := bodyOf(t, req)
	if strings.Contains(body, "responseJsonSchema") || strings.Contains(body, "responseMimeType") || !strings.Contains(body, "JSON Schema") {
		t.Errorf("Gemini 2.5: %s", body)
	}
	req.Tools = nil
	if body := bodyOf(t, req); !strings.Contains(body, "responseJsonSchema") {
		t.Errorf("Gemini 2.5 without tools: %s", body)
	}
}

func TestMediaHaveTheTypeThatTheyAreOf(t *testing.T) {
	t.Parallel()
	png := []byte("\x89PNG\r\n\x1a\n0000")
	for _, c := range []struct {
		part convo.Part
		want string
	}{
		{convo.Part{Kind: "image", Data: png}, `"mimeType":"image/png"`},
		{convo.Part{Kind: "image", Data: []byte{1, 2}}, `"mimeType":"image/png"`},
		{convo.Part{Kind: "image", URL: "https://x/y.JPG?z=1.png"}, `"mimeType":"image/jpeg"`},
		{convo.Part{Kind: "file", Name: "a.csv", Data: []byte("a,b")}, `"mimeType":"text/csv"`},
		{convo.Part{Kind: "file", Data: []byte("%PDF-1.7")}, `"mimeType":"application/pdf"`},
		{convo.Part{Kind: "file", Data: []byte("plain")}, `"mimeType":"text/plain"`},
		{convo.Part{Kind: "file", MIME: "audio/wav", URL: "gs://b/c"}, `"fileUri":"gs://b/c","mimeType":"audio/wav"`},
	} {
		req := hello()
		req.Messages[0].Parts = []convo.Part{c.part}
		if body := bodyOf(t, req); !strings.Contains(body, c.want) {
			t.Errorf("%+v: %s", c.part, body)
		}
	}
}

func TestOlderModelsGetMediaBesideAResult(t *testing.T) {
	t.Parallel()
	part := convo.Part{Kind: "image", MIME: "image/png", Data: []byte("x")}
	req := hello()
	with := result("a", "seen")
	with.Parts = []convo.Part{part}
	req.Messages = append(req.Messages, calls("a", "b"), with, result("b", "heard"))
	if got := contentsOf(t, req); !strings.Contains(got, `"parts":[{"inlineData"`) {
		t.Errorf("Gemini 3: %s", got)
	}
	req.Model = "gemini-2.5-flash"
	got := contentsOf(t, req)
	if strings.Contains(got, `"parts":[{"inlineData"`) || strings.Index(got, "inlineData") < strings.Index(got, "heard") {
		t.Errorf("Gemini 2.5: %s", got)
	}
}

func TestToolsAreCalledByNamesThatTheAPITakes(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	names := []string{"mcp:files/read", "9lives", "ünï", strings.Repeat("long", 30), "plain_one"}
	var tools []llm.Tool
	for _, name := range names {
		tools = append(tools, llm.Tool{Name: name})
	}
	p := gemini.New(gemini.Options{BaseURL: s.Root})
	for _, keep := range []bool{false, true} {
		for n, name := range names {
			s.Answer(func(r *llmtest.Request) llmtest.Turn {
				return llmtest.Turn{Calls: []convo.Call{{ID: "a", Name: r.Tools[n].Name, Arguments: "{}"}}}
			})
			req := hello()
			req.Tools, req.ToolChoice, req.KeepSession = tools, name, keep
			res, err := p.Generate(t.Context(), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Message.Calls) != 1 || res.Message.Calls[0].Name != name {
				t.Errorf("%q was called as %+v", name, res.Message.Calls)
			}
			req.Messages = append(req.Messages, res.Message, result("a", "x"), user("again"))
			if _, err := p.Generate(t.Context(), req, nil); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

func TestSignaturesAreForTheirModelHostAndAPIAlone(t *testing.T) {
	t.Parallel()
	s, other := llmtest.New(t), llmtest.New(t)
	think := llmtest.Turn{Text: "Hm.", Usage: llm.Usage{Reasoning: 3}, Calls: []convo.Call{{ID: "a", Name: "ping", Arguments: `{"b":1, "a":2}`}}}
	s.Script(think)
	req := hello()
	req.Model, req.Reasoning = "gemini-3-pro", "low"
	res, err := gemini.New(gemini.Options{BaseURL: s.Root}).Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := res.Message
	for _, c := range []struct {
		server    *llmtest.Server
		model     string
		keep      bool
		change    func(*convo.Message)
		signature bool
	}{
		{s, "gemini-3-pro", false, func(*convo.Message) {}, true},
		{s, "gemini-3-pro", false, func(m *convo.Message) { m.ID, m.Pinned = "x", true }, true},
		{s, "gemini-3-flash", false, func(*convo.Message) {}, false},
		{s, "gemini-2.5-pro", false, func(*convo.Message) {}, false},
		{s, "gemini-3-pro", true, func(*convo.Message) {}, false},
		{other, "gemini-3-pro", false, func(*convo.Message) {}, false},
		{s, "gemini-3-pro", false, func(m *convo.Message) { m.Provider = "openai" }, false},
		{s, "gemini-3-pro", false, func(m *convo.Message) { m.Text = "Hm!" }, false},
		{s, "gemini-3-pro", false, func(m *convo.Message) {
			m.Calls = slices.Clone(m.Calls)
			m.Calls[0].Arguments = `{"a":2}`
		}, false},
	} {
		m := first
		c.change(&m)
		c.server.Script(llmtest.Text("Yes."))
		next := &llm.Request{Model: c.model, KeepSession: c.keep, Messages: []convo.Message{user("a"), m, result("a", "x")}}
		if _, err := gemini.New(gemini.Options{BaseURL: c.server.Root}).Generate(t.Context(), next, nil); err != nil {
			t.Fatal(err)
		}
		got := c.server.Last()
		if back := got.Messages[1].Native != nil; back != c.signature {
			t.Errorf("%s, kept %v: the signature came back: %v: %s", c.model, c.keep, back, got.Body)
		}
		if got.Messages[1].Text != m.Text || len(got.Messages[1].Calls) != 1 {
			t.Errorf("%s: the message came as %+v", c.model, got.Messages[1])
		}
		dummy := strings.Contains(string(got.Body), "skip_thought_signature_validator")
		if want := !c.signature && !c.keep && strings.HasPrefix(c.model, "gemini-3"); dummy != want {
			t.Errorf("%s, kept %v: a signature was made up: %v", c.model, c.keep, dummy)
		}
	}
}

func TestASessionTakesFilesAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	req := hello()
	req.KeepSession = true
	req.Messages[0].Parts = []convo.Part{
		{Kind: "file", Name: "plan.pdf", Data: []byte("%PDF-1.7")}, {Kind: "file", Name: "log.txt", Data: []byte("all well")},
	}
	if body := bodyOf(t, req); !strings.Contains(body, `"type":"document"`) || !strings.Contains(body, `log.txt\nall well`) {
		t.Errorf("the files came as %s", body)
	}
	req.Messages[0].Parts = []convo.Part{{Kind: "file", Name: "x.bin", Data: []byte{0xff, 0xfe}}}
	_, err := gemini.New(gemini.Options{BaseURL: "http://test"}).Body(req)
	wantError(t, err, "model_invalid_request", "history: client", false)
}

func TestThoughtSignatureOfTextIsSentBack(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Script(llmtest.Turn{Raw: []string{
		`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Of two parts. "}]}}]}` + "\n\n",
		`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"The last.","thoughtSignature":"c2lnbmVk"}]},"finishReason":"STOP"}]}` + "\n\n",
	}})
	p := gemini.New(gemini.Options{BaseURL: s.Root})
	req := hello()
	req.Model = "gemini-3-pro"
	res, err := p.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := &llm.Request{Model: req.Model, Messages: []convo.Message{user("a"), res.Message, user("b")}}
	sent, err := p.Body(next)
	if err != nil {
		t.Fatal(err)
	}
	body := string(sent)
	if want := `{"text":"The last.","thoughtSignature":"c2lnbmVk"}`; !strings.Contains(body, want) || !strings.Contains(body, "Of two parts. ") {
		t.Errorf("the second request lacks %s: %s", want, body)
	}
}
