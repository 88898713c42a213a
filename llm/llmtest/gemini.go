package llmtest

import (
	_ "embed" // the API's schema
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

//go:embed gemini.schema.json
var geminiSchema []byte

// geminiAPI is Google's Gemini API: GenerateContent.
type geminiAPI struct{ schema *jsonschema.Schema }

// geminiShape compiles the schema once, because campaigns check many bodies.
var geminiShape = sync.OnceValue(func() *jsonschema.Schema { //nolint:gochecknoglobals // a compiled table
	return mustCompile("weir:gemini", geminiSchema)
})

func newGeminiAPI() geminiAPI { return geminiAPI{geminiShape()} }

type geminiBody struct {
	Contents    []geminiContent `json:"contents"`
	Instruction *geminiContent  `json:"systemInstruction"`
	Tools       []struct {
		Functions []struct {
			Name        string         `json:"name"`
			Description string         `json:"description"`
			Parameters  map[string]any `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig *struct {
		Calling struct {
			Mode    string   `json:"mode"`
			Allowed []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Generation struct {
		MIME     string         `json:"responseMimeType"`
		Schema   map[string]any `json:"responseJsonSchema"`
		Old      map[string]any `json:"responseSchema"`
		Thinking *struct {
			Include bool   `json:"includeThoughts"`
			Level   string `json:"thinkingLevel"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      *string         `json:"text"`
	Inline    *geminiBlob     `json:"inlineData"`
	File      *geminiFile     `json:"fileData"`
	Call      *geminiCall     `json:"functionCall"`
	Response  *geminiResponse `json:"functionResponse"`
	Thought   bool            `json:"thought"`
	Signature string          `json:"thoughtSignature"`
}

type geminiBlob struct {
	MIME string `json:"mimeType"`
	Data []byte `json:"data"`
	Name string `json:"displayName"`
}

type geminiFile struct {
	MIME string `json:"mimeType"`
	URI  string `json:"fileUri"`
	Name string `json:"displayName"`
}

type geminiCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiResponse struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Response struct {
		Output string `json:"output"`
		Error  string `json:"error"`
	} `json:"response"`
	Parts []geminiPart `json:"parts"`
}

func (w geminiAPI) name() string { return "gemini" }

func (w geminiAPI) routes() []string { return []string{"/v1beta/models/{call}"} }

func (w geminiAPI) key(r *http.Request) string { return r.Header.Get("X-Goog-Api-Key") }

func (w geminiAPI) tail() int { return 0 }

// CheckGemini returns the rules of GenerateContent that a body breaks for any model: rules of single models are not
// checked, and any signature is accepted.
func CheckGemini(body []byte) []string {
	_, problems := newGeminiAPI().check(body, "", nil)
	return problems
}

func (w geminiAPI) read(r *http.Request, body []byte, known issuedIDs) *parsedRequest {
	a := &parsedRequest{}
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	a.Model = model
	b, problems := w.check(body, model, known)
	switch alt := r.URL.Query().Get("alt"); {
	case method == "streamGenerateContent" && alt == "sse":
		a.streamed = true
	case method != "generateContent" || alt != "":
		problems = append(problems, "the method is "+method+" with alt="+alt)
	}
	a.Problems = problems
	a.summary = b.Generation.Thinking != nil && b.Generation.Thinking.Include
	for _, t := range b.Tools {
		for _, f := range t.Functions {
			a.Tools = append(a.Tools, llm.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
		}
	}
	a.Choice = b.choice()
	if b.Instruction != nil {
		for _, p := range b.Instruction.Parts {
			a.Messages = append(a.Messages, convo.Message{Role: convo.System, Text: p.text()})
		}
	}
	for _, c := range b.Contents {
		if c.Role == "model" {
			a.Messages = append(a.Messages, c.model()...)
		} else {
			a.Messages = append(a.Messages, c.user()...)
		}
	}
	return a
}

func (b *geminiBody) choice() string {
	if b.ToolConfig == nil {
		return ""
	}
	switch c := b.ToolConfig.Calling; {
	case len(c.Allowed) == 1:
		return c.Allowed[0]
	case c.Mode == "ANY":
		return "required"
	default:
		return strings.ToLower(c.Mode)
	}
}

func (p *geminiPart) text() string {
	if p.Text == nil {
		return ""
	}
	return *p.Text
}

// media converts an image or a file. If only its address is given, its type determines which it is.
func (p *geminiPart) media() []convo.Part {
	kind := func(mime string) string {
		if strings.HasPrefix(mime, "image/") {
			return "image"
		}
		return "file"
	}
	switch {
	case p.Inline != nil:
		return []convo.Part{{Kind: kind(p.Inline.MIME), MIME: p.Inline.MIME, Data: p.Inline.Data, Name: p.Inline.Name}}
	case p.File != nil:
		return []convo.Part{{Kind: kind(p.File.MIME), URL: p.File.URI, Name: p.File.Name}}
	}
	return nil
}

// model converts the model's part of a content: each text is a message, followed by its calls.
func (c *geminiContent) model() []convo.Message {
	out := []convo.Message{{Role: convo.Assistant}}
	for _, p := range c.Parts {
		m := &out[len(out)-1]
		if p.text() != "" && !p.Thought && (m.Text != "" || len(m.Calls)+len(m.Parts) > 0) {
			out = append(out, convo.Message{Role: convo.Assistant})
			m = &out[len(out)-1]
		}
		switch {
		case p.Thought:
			m.Reasoning += p.text()
		case p.Call != nil:
			args := string(p.Call.Args)
			if args == "" {
				args = "{}"
			}
			m.Calls = append(m.Calls, convo.Call{ID: p.Call.ID, Name: p.Call.Name, Arguments: args})
		default:
			m.Text += p.text()
			m.Parts = append(m.Parts, p.media()...)
		}
		if p.Signature != "" && p.Signature != unsigned {
			m.Native = json.RawMessage(encode(p.Signature))
		}
	}
	return out
}

// user converts the user's part of a content, results first.
func (c *geminiContent) user() []convo.Message {
	var out []convo.Message
	for _, p := range c.Parts {
		switch {
		case p.Response != nil:
			m := convo.Message{
				Role: convo.Tool, CallID: p.Response.ID, Text: p.Response.Response.Output + p.Response.Response.Error,
				Failed: p.Response.Response.Error != "",
			}
			for _, in := range p.Response.Parts {
				m.Parts = append(m.Parts, in.media()...)
			}
			out = append(out, m)
		case p.Text != nil || len(out) == 0 || out[len(out)-1].Role != convo.User:
			out = append(out, convo.Message{Role: convo.User, Text: p.text(), Parts: p.media()})
		default:
			m := &out[len(out)-1]
			m.Parts = append(m.Parts, p.media()...)
		}
	}
	return out
}
