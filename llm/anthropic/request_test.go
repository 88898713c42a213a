package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/llmtest"
)

const (
	sonnet = "claude-sonnet-4-5"
	opus   = "claude-opus-4-8"
)

// sentRequest holds the members of a request's body that the tests check.
type sentRequest struct {
	MaxTokens   int      `json:"max_tokens"`
	Stream      bool     `json:"stream"`
	Temperature *float64 `json:"temperature"`
	System      []content
	Messages    []struct {
		Role    string
		Content []content
	}
	Tools []struct {
		Name string
		Mark any `json:"cache_control"`
	}
	Choice   map[string]any `json:"tool_choice"`
	Thinking map[string]any
	Output   struct {
		Effort string
		Format *struct{ Schema map[string]any }
	} `json:"output_config"`
}

type content struct {
	Type, Text, ID, Name, Thinking, Signature string
	Input                                     map[string]any
	CallID                                    string `json:"tool_use_id"`
	Failed                                    bool   `json:"is_error"`
	Content                                   []content
	Mark                                      any `json:"cache_control"`
	Source                                    map[string]any
}

// built returns the body of a request, which must break no rule.
func built(t *testing.T, req *llm.Request) sentRequest {
	t.Helper()
	body, err := anthropic.New(anthropic.Options{BaseURL: "http://127.0.0.1:1"}).Body(req)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range llmtest.CheckAnthropic(body) {
		t.Errorf("the body breaks a rule: %s\n%s", problem, body)
	}
	var w sentRequest
	if err := json.Unmarshal(body, &w); err != nil {
		t.Fatal(err)
	}
	if !w.Stream {
		t.Errorf("the request is not streamed: %s", body)
	}
	return w
}

// shape is messages in short: "user: text hi; result a" for each.
func (w sentRequest) shape() string {
	var out []string
	for _, m := range w.Messages {
		var blocks []string
		for _, c := range m.Content {
			switch c.Type {
			case "tool_use":
				blocks = append(blocks, "call "+c.ID)
			case "tool_result":
				blocks = append(blocks, "result "+c.CallID)
			case "text":
				blocks = append(blocks, c.Text)
			default:
				blocks = append(blocks, c.Type)
			}
		}
		out = append(out, m.Role+": "+strings.Join(blocks, ", "))
	}
	return strings.Join(out, " | ")
}

func user(text string) convo.Message { return convo.Message{Role: convo.User, Text: text} }

func said(text string, calls ...convo.Call) convo.Message {
	return convo.Message{Role: convo.Assistant, Text: text, Calls: calls}
}

func call(id string) convo.Call { return convo.Call{ID: id, Name: "ping", Arguments: `{"n":1}`} }

func result(id, text string) convo.Message {
	return convo.Message{Role: convo.Tool, CallID: id, Name: "ping", Text: text}
}

func ask(model string, messages ...convo.Message) *llm.Request {
	return &llm.Request{Model: model, Messages: messages, Tools: []llm.Tool{{Name: "ping"}}}
}

func TestEveryHistoryBecomesAValidRequest(t *testing.T) {
	t.Parallel()
	system := convo.Message{Role: convo.System, Text: "Be brief."}
	opening := "user: (The conversation begins here.)"
	for _, c := range []struct {
		name     string
		model    string
		messages []convo.Message
		want     string
	}{
		{"one side twice", sonnet, []convo.Message{user("a"), user("b"), said("c"), said("d"), user("e")}, "user: a, b | assistant: c, d | user: e"},
		{"the assistant first", sonnet, []convo.Message{said("Hello."), user("a")}, opening + " | assistant: Hello. | user: a"},
		{"nothing said", sonnet, []convo.Message{user(" \n"), said("")}, opening},
		{"only the system", sonnet, []convo.Message{system}, opening},
		{"empty messages between", sonnet, []convo.Message{user("a"), said("\u2028"), user(""), user("b")}, "user: a, b"},
		{"the system in the middle", sonnet, []convo.Message{system, user("a"), said("b"), system, user("c")}, "user: a | assistant: b | user: <system>\nBe brief.\n</system>, c"},
		{"the system among results", sonnet, []convo.Message{user("a"), said("", call("x")), system, result("x", "1")}, "user: a | assistant: call x | user: result x, <system>\nBe brief.\n</system>"},
		{"results out of order", sonnet, []convo.Message{user("a"), said("", call("x"), call("y")), result("y", "1"), user("b"), result("x", "2")}, "user: a | assistant: call x, call y | user: result y, result x, b"},
		{"a prefill", sonnet, []convo.Message{user("a"), said("So \n")}, "user: a | assistant: So"},
		{"an end a newer model cannot go on from", opus, []convo.Message{user("a"), said("So \n")}, "user: a | assistant: So \n | user: Continue."},
		{"words after calls of one answer", sonnet, []convo.Message{user("a"), said("b"), said("c", call("x")), result("x", ""), said("d"), user("e")}, "user: a | assistant: b, c, call x | user: result x | assistant: d | user: e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := built(t, ask(c.model, c.messages...)).shape(); got != c.want {
				t.Errorf("the messages are\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

func TestHistoriesWithoutTheirResultsAreRefused(t *testing.T) {
	t.Parallel()
	p := anthropic.New(anthropic.Options{BaseURL: "http://127.0.0.1:1"})
	for name, messages := range map[string][]convo.Message{
		"a call without result":        {user("a"), said("", call("x")), user("b")},
		"a call before the next":       {user("a"), said("", call("x")), said("b")},
		"a result without call":        {user("a"), result("x", "1")},
		"a result given twice":         {user("a"), said("", call("x")), result("x", "1"), result("x", "1")},
		"a result of an older turn":    {user("a"), said("", call("x")), result("x", "1"), said("b"), result("x", "2")},
		"an image of the assistant's":  {user("a"), {Role: convo.Assistant, Parts: []convo.Part{{Kind: "image", URL: "https://x"}}}},
		"an image of an unknown type":  {{Role: convo.User, Parts: []convo.Part{{Kind: "image", MIME: "image/bmp", Data: []byte("x")}}}},
		"a file that is neither":       {{Role: convo.User, Parts: []convo.Part{{Kind: "file", MIME: "application/zip", Data: []byte{0xff, 0xfe, 0}}}}},
		"a spreadsheet by its address": {{Role: convo.User, Parts: []convo.Part{{Kind: "file", MIME: "text/csv", URL: "https://x"}}}},
	} {
		_, err := p.Body(ask(sonnet, messages...))
		var e *llm.Error
		if !errors.As(err, &e) || e.Code != "model_invalid_request" || e.Retry {
			t.Errorf("%s is %v", name, err)
		}
	}
}

func TestCallIDsAreValidForTheVendorAndStable(t *testing.T) {
	t.Parallel()
	long, odd := strings.Repeat("x", 80), "call:1/é"
	req := ask(
		sonnet, user("a"), said("", call("x"), call(odd), call(long)), result(odd, "1"), result("x", "2"), result(long, "3"),
		said("", call("x")), result("x", "4"), said("", call("d"), call("d")), result("d", "5"), result("d", "6"), user("b"),
	)
	w := built(t, req)
	if again := built(t, req); again.shape() != w.shape() {
		t.Errorf("the ids differ:\n%s\n%s", w.shape(), again.shape())
	}
	ids := map[string]string{}
	for _, m := range w.Messages {
		for _, c := range m.Content {
			if c.Type == "tool_result" {
				ids[c.Content[0].Text] = c.CallID
			}
		}
	}
	of := func(message, n int) string { return w.Messages[message].Content[n].ID }
	want := map[string]string{"2": of(1, 0), "1": of(1, 1), "3": of(1, 2), "4": of(3, 0), "5": of(5, 0), "6": of(5, 1)}
	if fmt.Sprint(ids) != fmt.Sprint(want) || of(1, 0) != "x" {
		t.Errorf("results answer %v, want %v", ids, want)
	}
}

func TestArgumentsAndNamesOfOtherModelsAreMadeToFit(t *testing.T) {
	t.Parallel()
	w := built(t, ask(
		sonnet, user("a"),
		said("", convo.Call{ID: "1", Name: "mcp.read/file", Arguments: `{"n": 12345678901234567890}`}, convo.Call{ID: "2", Name: "ping", Arguments: `{broken`},
			convo.Call{ID: "3", Name: "ping", Arguments: `[1]`}, convo.Call{ID: "4", Name: "ping", Arguments: `null`}, convo.Call{ID: "5", Name: "ping"}),
		result("1", "x"), result("2", "x"), result("3", "x"), result("4", "x"), result("5", "x"),
	))
	var got []string
	for _, c := range w.Messages[1].Content {
		got = append(got, c.Name+" "+fmt.Sprint(c.Input))
	}
	want := []string{
		"mcp_read_file_21494481 map[n:1.2345678901234567e+19]", "ping map[arguments:{broken]", "ping map[arguments:[1]]",
		"ping map[arguments:null]", "ping map[]",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the calls are %q, want %q", got, want)
	}
}

func TestToolsOfTheHistoryAreDefinedWhereThereAreNone(t *testing.T) {
	t.Parallel()
	req := ask(sonnet, user("a"), said("", call("x")), result("x", "1"))
	req.Tools = nil
	w := built(t, req)
	if len(w.Tools) != 1 || w.Tools[0].Name != "ping" || w.Choice["type"] != "none" {
		t.Errorf("tools %+v, choice %v", w.Tools, w.Choice)
	}
}

func TestFailedToolResultHasTextBeforeItsImages(t *testing.T) {
	t.Parallel()
	failed := convo.Message{Role: convo.Tool, CallID: "x", Failed: true, Parts: []convo.Part{{Kind: "image", URL: "https://example.com/a.png"}}}
	w := built(t, ask(sonnet, user("a"), said("", call("x"), call("y")), failed, result("y", "ok")))
	first := w.Messages[2].Content[0]
	if got := w.shape(); !strings.HasSuffix(got, "user: result x, result y, image") || !first.Failed || first.Content[0].Text == "" {
		t.Errorf("%s, %+v", got, first)
	}
}

func TestFilesArePDFsOrText(t *testing.T) {
	t.Parallel()
	m := user("Read.")
	m.Parts = []convo.Part{
		{Kind: "file", Name: "a.pdf", Data: []byte("%PDF-1.7")},
		{Kind: "file", MIME: "text/csv; charset=utf-8", Name: "a.csv", Data: []byte("a,b")},
		{Kind: "file", MIME: "application/json", Data: []byte("{}")},
		{Kind: "file", URL: "https://example.com/a.pdf"},
		{Kind: "image", Data: []byte("\x89PNG\r\n\x1a\n")},
		{Kind: "image", MIME: "IMAGE/JPG", Data: []byte("x")},
	}
	var got []string
	for _, c := range built(t, ask(sonnet, m)).Messages[0].Content[1:] {
		got = append(got, fmt.Sprint(c.Type, " ", c.Source["type"], " ", c.Source["media_type"]))
	}
	want := []string{
		"document base64 application/pdf", "document text text/plain", "document text text/plain", "document url <nil>",
		"image base64 image/png", "image base64 image/jpeg",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the parts are %q, want %q", got, want)
	}
}

func TestRequestBodyMatchesGolden(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, llmtest.Text("Yes."))
	p := anthropic.New(anthropic.Options{BaseURL: s.Root})
	req := ask(sonnet, user("a <b>"), said("", call("x")), result("x", "1"))
	req.System, req.Reasoning, req.StablePrefix = "Be brief.", "low", 1
	body, err := p.Body(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if sent := s.Last().Body; string(body) != string(sent) {
		t.Errorf("the body is\n%s\nand was sent as\n%s", body, sent)
	}
}
