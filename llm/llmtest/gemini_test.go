package llmtest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

const (
	geminiHello  = `{"role":"user","parts":[{"text":"hi"}]}`
	geminiWords  = `{"role":"model","parts":[{"text":"hello"}]}`
	geminiPing   = `{"role":"model","parts":[{"functionCall":{"name":"ping","args":{}}}]}`
	geminiPong   = `{"role":"user","parts":[{"functionResponse":{"name":"ping","response":{"output":"pong"}}}]}`
	geminiPing2  = `{"role":"model","parts":[{"functionCall":{"id":"a","name":"ping","args":{}}},{"functionCall":{"id":"b","name":"tide"}}]}`
	geminiPong2  = `{"role":"user","parts":[{"functionResponse":{"id":"b","name":"tide","response":{"output":"x"}}},{"functionResponse":{"id":"a","name":"ping","response":{"error":"y"}}}]}`
	geminiTools  = `"tools":[{"functionDeclarations":[{"name":"ping","parametersJsonSchema":{"type":"object"}}]}]`
	geminiSealed = `"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}`
)

// asked returns a body of contents.
func asked(contents ...string) string { return `{"contents":[` + strings.Join(contents, ",") + `]}` }

// with adds fields to a body that asks something.
func with(fields string) string { return `{"contents":[` + geminiHello + `],` + fields + `}` }

// saying returns a body with one part of the user's.
func saying(part string) string { return asked(`{"role":"user","parts":[` + part + `]}`) }

func TestValidGeminiRequestsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		asked(geminiHello),
		asked(geminiHello, geminiWords, geminiHello),
		asked(geminiHello, geminiPing, geminiPong),
		asked(geminiHello, geminiPing2, geminiPong2, geminiWords, geminiHello),
		asked(geminiHello, geminiPing, strings.Replace(geminiPong, `}]}`, `},{"text":"and now?"}]}`, 1)),
		asked(geminiHello, `{"role":"model","parts":[{"text":"","thoughtSignature":"AAAA"}]}`, geminiHello),
		asked(geminiHello, `{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"skip_thought_signature_validator"},{"text":"x"}]}`, geminiHello),
		saying(`{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"fileData":{"fileUri":"https://x/y","mimeType":"image/png"}}`),
		asked(geminiHello, geminiPing, `{"role":"user","parts":[{"functionResponse":{"name":"ping","response":{"output":""},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}]}`),
		with(geminiTools + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["ping"]}}`),
		with(geminiSealed + `,"systemInstruction":{"parts":[{"text":"a"},{"text":"b"}]}`),
		with(`"generationConfig":{"temperature":0.5,"maxOutputTokens":10,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":-1}}`),
	} {
		if problems := CheckGemini([]byte(body)); len(problems) > 0 {
			t.Errorf("%s: %q", body, problems)
		}
	}
}

func TestEachRuleOfGeminiIsHeld(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no JSON":                         `{"contents"`,
		"no contents":                     `{"contents":[]}`,
		"an unknown parameter":            with(`"messages":[]`),
		"an unknown part":                 saying(`{"smell":"x"}`),
		"an unknown field of a part":      saying(`{"text":"x","id":"1"}`),
		"a part that is two":              saying(`{"text":"x","inlineData":{"mimeType":"image/png","data":"AAAA"}}`),
		"a part that is nothing":          saying(`{}`),
		"a content without parts":         asked(`{"role":"user","parts":[]}`),
		"a content without a role":        asked(`{"parts":[{"text":"x"}]}`),
		"an unknown role":                 asked(`{"role":"assistant","parts":[{"text":"x"}]}`),
		"a function role":                 asked(geminiHello, geminiPing, strings.Replace(geminiPong, "user", "function", 1)),
		"an empty text":                   saying(`{"text":""}`),
		"the model first":                 asked(geminiWords, geminiHello),
		"the model last":                  asked(geminiHello, geminiWords),
		"two of the user":                 asked(geminiHello, geminiHello),
		"two of the model":                asked(geminiHello, geminiWords, geminiWords, geminiHello),
		"a call of the user":              asked(strings.Replace(geminiPing, "model", "user", 1), geminiWords, geminiPong),
		"a response of the model":         asked(geminiHello, strings.Replace(geminiPong, "user", "model", 1), geminiHello),
		"a response first":                asked(geminiPong),
		"a response of no call":           asked(geminiHello, geminiWords, geminiPong),
		"a call without response":         asked(geminiHello, geminiPing, geminiHello),
		"a call at the end":               asked(geminiHello, geminiPing),
		"too few responses":               asked(geminiHello, geminiPing2, geminiPong),
		"too many responses":              asked(geminiHello, geminiPing, geminiPong2),
		"a response of another name":      asked(geminiHello, geminiPing, strings.Replace(geminiPong, "ping", "tide", 1)),
		"a response of another id":        asked(geminiHello, geminiPing2, strings.Replace(geminiPong2, `"id":"b"`, `"id":"c"`, 1)),
		"ids that change their call":      asked(geminiHello, geminiPing2, strings.NewReplacer(`"id":"a"`, `"id":"b"`, `"id":"b"`, `"id":"a"`).Replace(geminiPong2)),
		"an id that no call has":          asked(geminiHello, geminiPing, strings.Replace(geminiPong, `"name"`, `"id":"a","name"`, 1)),
		"two calls of an id":              asked(geminiHello, strings.Replace(geminiPing2, `"id":"b"`, `"id":"a"`, 1), strings.Replace(geminiPong2, `"id":"b"`, `"id":"a"`, 1)),
		"words before a response":         asked(geminiHello, geminiPing, strings.Replace(geminiPong, `[{`, `[{"text":"x"},{`, 1)),
		"a name with a space":             asked(geminiHello, strings.Replace(geminiPing, "ping", "p g", 1), strings.Replace(geminiPong, "ping", "p g", 1)),
		"a name with a digit first":       with(`"tools":[{"functionDeclarations":[{"name":"1a"}]}]`),
		"a name that is too long":         with(`"tools":[{"functionDeclarations":[{"name":"` + strings.Repeat("a", 65) + `"}]}]`),
		"arguments that are no object":    asked(geminiHello, strings.Replace(geminiPing, `{}}}`, `[]}}`, 1), geminiPong),
		"a response that is no object":    asked(geminiHello, geminiPing, strings.Replace(geminiPong, `{"output":"pong"}`, `"pong"`, 1)),
		"a thought of the user's":         saying(`{"text":"x","thought":true}`),
		"a signature of the user's":       saying(`{"text":"x","thoughtSignature":"AAAA"}`),
		"a signature that is none":        asked(geminiHello, `{"role":"model","parts":[{"text":"x","thoughtSignature":"!"}]}`, geminiHello),
		"data without a type":             saying(`{"inlineData":{"data":"AAAA"}}`),
		"data of no type":                 saying(`{"inlineData":{"mimeType":"png","data":"AAAA"}}`),
		"an image that is not read":       saying(`{"inlineData":{"mimeType":"image/gif","data":"AAAA"}}`),
		"data of unknown type":            saying(`{"inlineData":{"mimeType":"application/octet-stream","data":"AAAA"}}`),
		"a type that is not there":        saying(`{"inlineData":{"mimeType":"smell/rose","data":"AAAA"}}`),
		"no data":                         saying(`{"inlineData":{"mimeType":"image/png","data":""}}`),
		"data that is not base64":         saying(`{"inlineData":{"mimeType":"image/png","data":"§"}}`),
		"a file nowhere":                  saying(`{"fileData":{"fileUri":"weir.png"}}`),
		"two tools of a name":             with(`"tools":[{"functionDeclarations":[{"name":"a"},{"name":"a"}]}]`),
		"a tool whose schema is none":     with(`"tools":[{"functionDeclarations":[{"name":"a","parametersJsonSchema":{"type":"object","properties":{"x":{"type":"text"}}}}]}]`),
		"a tool that takes a list":        with(`"tools":[{"functionDeclarations":[{"name":"a","parametersJsonSchema":{"type":"array"}}]}]`),
		"a tool with two schemas":         with(`"tools":[{"functionDeclarations":[{"name":"a","parameters":{},"parametersJsonSchema":{"type":"object"}}]}]`),
		"OpenAI's tool":                   with(`"tools":[{"type":"function","name":"a"}]`),
		"a choice without tools":          with(`"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}`),
		"an unknown choice":               with(geminiTools + `,"toolConfig":{"functionCallingConfig":{"mode":"auto"}}`),
		"a choice of an unknown tool":     with(geminiTools + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["pong"]}}`),
		"a choice that is no choice":      with(geminiTools + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["ping"]}}`),
		"a schema for text":               with(`"generationConfig":{"responseJsonSchema":{"type":"object"}}`),
		"two schemas":                     with(strings.Replace(geminiSealed, `"responseJ`, `"responseSchema":{},"responseJ`, 1)),
		"a schema that is none":           with(strings.Replace(geminiSealed, `"object"`, `"thing"`, 1)),
		"heat":                            with(`"generationConfig":{"temperature":3}`),
		"no output":                       with(`"generationConfig":{"maxOutputTokens":0}`),
		"a budget and a level":            with(`"generationConfig":{"thinkingConfig":{"thinkingBudget":1,"thinkingLevel":"LOW"}}`),
		"an unknown level":                with(`"generationConfig":{"thinkingConfig":{"thinkingLevel":"low"}}`),
		"an instruction that says nought": with(`"systemInstruction":{"parts":[{"text":""}]}`),
	} {
		if len(CheckGemini([]byte(body))) == 0 {
			t.Errorf("%s is taken: %s", name, body)
		}
	}
}

// geminiPost sends a body to a model and gives the status and answer.
func geminiPost(t *testing.T, s *Server, call, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Root+"/v1beta/"+call, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}

func TestSettingsOfSomeGeminiModels(t *testing.T) {
	t.Parallel()
	sealed := `{"contents":[` + geminiHello + `],` + geminiTools + `,` + geminiSealed + `}`
	level := with(`"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}`)
	called := asked(geminiHello, geminiPing, geminiPong)
	signed := asked(geminiHello, strings.Replace(geminiPing, `"functionCall"`, `"thoughtSignature":"skip_thought_signature_validator","functionCall"`, 1), geminiPong)
	forged := strings.Replace(signed, unsigned, "AAAA", 1)
	earlier := asked(geminiHello, geminiPing, geminiPong, geminiWords, geminiHello)
	for _, c := range []struct {
		call, body string
		status     int
	}{
		{"models/gemini-3-pro:generateContent", sealed, 200},
		{"models/gemini-2.5-pro:generateContent", sealed, 400},
		{"models/gemini-3-pro:generateContent", level, 200},
		{"models/gemini-2.5-pro:generateContent", level, 400},
		{"models/gemini-3-pro:generateContent", called, 400},
		{"models/gemini-2.5-pro:generateContent", called, 200},
		{"models/gemini-3-pro:generateContent", signed, 200},
		{"models/gemini-3-pro:generateContent", forged, 400},
		{"models/gemini-3-pro:generateContent", earlier, 200},
		{"models/gemini-3-pro:streamGenerateContent?alt=sse", earlier, 200},
		{"models/gemini-3-pro:streamGenerateContent", earlier, 400},
		{"models/gemini-3-pro:countTokens", earlier, 400},
		{"models", earlier, 404},
	} {
		s := New(t, Turn{Text: "Yes.", Piece: 9})
		status, answer := geminiPost(t, s, c.call, c.body)
		if status != c.status || (status == http.StatusOK) != strings.Contains(answer, "Yes.") {
			t.Errorf("%s %s: %d %s", c.call, c.body, status, answer)
		}
		if status == http.StatusBadRequest && len(s.TakeProblems()) == 0 {
			t.Errorf("%s %s: no problem was recorded", c.call, c.body)
		}
	}
}

const (
	stepHello = `{"type":"user_input","content":[{"type":"text","text":"hi"}]}`
	stepWords = `{"type":"model_output","content":[{"type":"text","text":"hello"}]}`
	stepCall  = `{"type":"function_call","id":"a","name":"ping","arguments":{}}`
	stepDone  = `{"type":"function_result","call_id":"a","name":"ping","result":"pong"}`
	stepTools = `"tools":[{"type":"function","name":"ping","parameters":{"type":"object"}}]`
)

func stepped(steps ...string) string {
	return `{"model":"gemini-3-pro","input":[` + strings.Join(steps, ",") + `]}`
}

func configured(fields string) string { return `{"model":"m","input":"hi",` + fields + `}` }

func TestValidInteractionsRequestsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"model":"m","input":"hi","store":true,"stream":true}`,
		stepped(stepHello, stepWords, stepHello),
		stepped(stepHello, `{"type":"thought","signature":"x"}`, stepCall, stepDone),
		stepped(stepHello, stepCall, strings.Replace(stepDone, `"pong"`, `[{"type":"image","mime_type":"image/png","data":"AAAA"}],"is_error":true`, 1)),
		stepped(stepHello, stepCall, stepDone, stepWords, stepHello),
		`{"model":"m","previous_interaction_id":"v1_1","input":[` + stepDone + `]}`,
		configured(stepTools + `,"generation_config":{"tool_choice":{"allowed_tools":{"mode":"any","tools":["ping"]}},"thinking_level":"low"}`),
		configured(`"response_format":{"type":"text","mime_type":"application/json","schema":{"type":"array"}}`),
	} {
		if problems := CheckInteraction([]byte(body)); len(problems) > 0 {
			t.Errorf("%s: %q", body, problems)
		}
	}
}

func TestEachRuleOfInteractionsIsHeld(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no model":                      `{"input":"hi"}`,
		"no input":                      `{"model":"m"}`,
		"an unknown parameter":          configured(`"contents":[]`),
		"no step":                       stepped(),
		"an unknown step":               stepped(`{"type":"smell","content":[]}`),
		"a step that says nothing":      stepped(`{"type":"user_input","content":[]}`),
		"an empty text":                 stepped(strings.Replace(stepHello, "hi", "", 1)),
		"a result that is nobody's":     stepped(stepHello, stepDone),
		"a result before its call":      stepped(stepHello, stepDone, stepCall),
		"a result given twice":          stepped(stepHello, stepCall, stepDone, stepDone),
		"a result of another name":      stepped(stepHello, stepCall, strings.Replace(stepDone, "ping", "tide", 1)),
		"a call without result":         stepped(stepHello, stepCall, stepHello),
		"a call at the end":             stepped(stepHello, stepCall),
		"two calls of an id":            stepped(stepHello, stepCall, stepDone, stepCall, stepDone),
		"a call without an id":          stepped(stepHello, strings.Replace(stepCall, `"id":"a",`, "", 1), stepDone),
		"arguments as text":             stepped(stepHello, strings.Replace(stepCall, "{}}", `"{}"}`, 1), stepDone),
		"the model first":               stepped(stepWords, stepHello),
		"the model last":                stepped(stepHello, stepWords),
		"a document of unknown type":    stepped(`{"type":"user_input","content":[{"type":"document","mime_type":"text/plain","data":"AAAA"}]}`),
		"an image that is none":         stepped(`{"type":"user_input","content":[{"type":"image","mime_type":"application/pdf","data":"AAAA"}]}`),
		"an image of nothing":           stepped(`{"type":"user_input","content":[{"type":"image","mime_type":"image/png"}]}`),
		"two tools of a name":           configured(strings.Replace(stepTools, "[", `[{"type":"function","name":"ping"},`, 1)),
		"a choice without tools":        configured(`"generation_config":{"tool_choice":"any"}`),
		"a choice of an unknown tool":   configured(stepTools + `,"generation_config":{"tool_choice":{"allowed_tools":{"mode":"any","tools":["tide"]}}}`),
		"a level in capitals":           configured(`"generation_config":{"thinking_level":"LOW"}`),
		"a schema for text":             configured(`"response_format":{"type":"text","schema":{"type":"object"}}`),
		"a schema that is none":         configured(`"response_format":{"type":"text","mime_type":"application/json","schema":{"type":"thing"}}`),
		"a configuration that is empty": configured(`"generation_config":{}`),
	} {
		if len(CheckInteraction([]byte(body))) == 0 {
			t.Errorf("%s is taken: %s", name, body)
		}
	}
}

func TestAConversationIsHeldOnlyWhereItWasKept(t *testing.T) {
	t.Parallel()
	call := Turn{Usage: llm.Usage{Reasoning: 3}, Calls: []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}}
	for name, c := range map[string]struct {
		first, next string
		status      int
	}{
		"kept":                  {`{"model":"m","input":"hi"}`, `{"model":"m","previous_interaction_id":"v1_1","input":[` + stepDone + `]}`, 200},
		"not kept":              {`{"model":"m","input":"hi","store":false}`, `{"model":"m","previous_interaction_id":"v1_1","input":[` + stepDone + `]}`, 404},
		"another":               {`{"model":"m","input":"hi"}`, `{"model":"m","previous_interaction_id":"v1_2","input":[` + stepDone + `]}`, 404},
		"a call left open":      {`{"model":"m","input":"hi"}`, `{"model":"m","previous_interaction_id":"v1_1","input":"hi"}`, 400},
		"a result of no call":   {`{"model":"m","input":"hi"}`, `{"model":"m","previous_interaction_id":"v1_1","input":[` + strings.Replace(stepDone, `"a"`, `"b"`, 1) + `]}`, 400},
		"a signature of nobody": {`{"model":"m","input":"hi"}`, stepped(stepHello, `{"type":"thought","signature":"x"}`, stepWords, stepHello), 400},
	} {
		s := New(t, call, Text("Yes."))
		if status, answer := geminiPost(t, s, "interactions", c.first); status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, status, answer)
		}
		if status, answer := geminiPost(t, s, "interactions", c.next); status != c.status {
			t.Errorf("%s: %d %s", name, status, answer)
		}
		s.TakeProblems()
	}
}

func TestAResponseIsHeldOnlyWhereItWasKept(t *testing.T) {
	t.Parallel()
	call := Turn{Calls: []convo.Call{{ID: "a", Name: "ping", Arguments: "{}"}}}
	next := `{"model":"m","previous_response_id":"resp_1","input":[` + itemResult + `]}`
	for name, c := range map[string]struct {
		first, next string
		status      int
		says        string
	}{
		"kept":             {`{"model":"m","input":"hi","store":true}`, next, 200, "Yes."},
		"not kept":         {`{"model":"m","input":"hi","store":false}`, next, 400, "previous_response_not_found"},
		"a call left open": {`{"model":"m","input":"hi"}`, `{"model":"m","previous_response_id":"resp_1","input":"hi"}`, 400, "no tool output"},
	} {
		s := New(t, call, Text("Yes."))
		post(t, s, "responses", c.first)
		if status, answer := post(t, s, "responses", c.next); status != c.status || !strings.Contains(answer, c.says) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
		s.TakeProblems()
	}
}
