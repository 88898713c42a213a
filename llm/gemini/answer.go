package gemini

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// answerBuilder collects a response while its chunks are passed on.
type answerBuilder struct {
	vendorapi.StreamedText

	req           *llm.Request
	calls         []convo.Call
	media         []convo.Part
	parts         []nativePart
	usage         llm.Usage
	stop          string
	model         string
	id            string
	session       string
	api           string
	missingCallID bool // the vendor sent no id for a call
}

func newAnswerBuilder(req *llm.Request, emit func(llm.Chunk)) *answerBuilder {
	return &answerBuilder{StreamedText: vendorapi.StreamedText{Emit: emit}, req: req, model: req.Model, api: apiGenerate}
}

// addPart adds a part. A text without signature is joined to a preceding one without signature; signed parts must
// stay unchanged.
func (a *answerBuilder) addPart(part nativePart) {
	if n := len(a.parts); part.Text != nil && part.Signature == "" && n > 0 {
		last := &a.parts[n-1]
		if last.Text != nil && last.Signature == "" && last.Thought == part.Thought {
			joined := *last.Text + *part.Text
			last.Text = &joined
			return
		}
	}
	a.parts = append(a.parts, part)
}

// newCall converts a call. If it has no id, one is derived from the effect key, so that a repeated effect gets the
// same ids.
func (a *answerBuilder) newCall(id, name string, index int) convo.Call {
	c := convo.Call{ID: id, Name: name}
	if c.ID == "" {
		sum := sha256.Sum256([]byte(cmp.Or(a.req.Key, a.id)))
		a.missingCallID = true
		c.ID = fmt.Sprintf("call_%s_%d", hex.EncodeToString(sum[:8]), index)
	}
	return c
}

// addCall adds a call and emits it.
func (a *answerBuilder) addCall(id, name, args string) convo.Call {
	c := a.newCall(id, name, len(a.calls))
	c.Arguments = args
	if strings.TrimSpace(args) == "" || args == "null" {
		c.Arguments = "{}"
	}
	a.calls = append(a.calls, c)
	a.announce(c)
	return c
}

func (a *answerBuilder) announce(c convo.Call) {
	a.Emit(llm.Chunk{Call: &convo.Call{ID: c.ID, Name: c.Name}})
}

// emitUsage emits the usage that the vendor has reported.
func (a *answerBuilder) emitUsage() {
	if a.usage != (llm.Usage{}) {
		usage := a.usage
		a.Emit(llm.Chunk{Usage: &usage})
	}
}

// complete determines the stop reason and returns the response.
func (a *answerBuilder) complete(p *Provider) *llm.Response {
	if a.stop == llm.StopEnd && len(a.calls) > 0 {
		a.stop = llm.StopCalls
	}
	if a.stop == llm.StopCalls && len(a.calls) == 0 {
		a.stop = llm.StopEnd
	}
	m := convo.Message{
		Role: convo.Assistant, Text: a.Text(), Reasoning: a.Reasoning(), Calls: a.calls, Parts: a.media,
	}
	if a.missingCallID {
		a.session = "" // no result could refer to the call
	}
	if raw := a.native(p); raw != nil {
		m.Native, m.Provider = raw, name
	}
	a.emitUsage()
	return &llm.Response{
		Message: m, Usage: a.usage, Stop: a.stop, Model: a.model, ID: a.id, Session: a.session,
	}
}

// native returns what the message's own fields do not contain, nil if they contain everything.
func (a *answerBuilder) native(p *Provider) json.RawMessage {
	says := false
	calls := 0
	for _, part := range a.parts {
		says = says || part.Signature != ""
		if part.Call != nil {
			says = says || part.Call.ID != a.calls[calls].ID
			calls++
		}
	}
	if !says {
		return nil
	}
	n := native{API: a.api, Model: a.req.Model}
	if a.api == apiInteractions {
		n.Steps = a.parts
	} else {
		n.Parts = a.parts
	}
	return p.pack(n)
}
