package gemini

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// apiStep is one step of an interaction's input.
type apiStep struct {
	Type      string          `json:"type"`
	Content   []apiContent    `json:"content,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Summary   []apiContent    `json:"summary,omitempty"`
	ID        string          `json:"id,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    any             `json:"result,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// apiContent is a text or media.
type apiContent struct {
	Type string  `json:"type"`
	Text *string `json:"text,omitempty"`
	Data string  `json:"data,omitempty"`
	MIME string  `json:"mime_type,omitempty"`
	URI  string  `json:"uri,omitempty"`
}

// stepBuilder converts a history to steps.
type stepBuilder struct {
	p     *Provider
	req   *llm.Request
	steps []apiStep
	// used has the ids of all calls.
	used map[string]bool
}

// steps returns the part of req's history that the vendor does not have, and the instructions at its start.
func (p *Provider) steps(req *llm.Request) ([]apiStep, []string, error) {
	var instructions []string
	if req.System != "" {
		instructions = append(instructions, req.System)
	}
	front := 0
	for ; front < len(req.Messages) && req.Messages[front].Role == convo.System; front++ {
		if text := req.Messages[front].Text; text != "" {
			instructions = append(instructions, text)
		}
	}
	s := &stepBuilder{p: p, req: req, used: map[string]bool{}}
	for n := front; n < len(req.Messages); n++ {
		m := &req.Messages[n]
		held := continuesSession(req) && n < req.HeldMessages
		switch m.Role {
		case convo.System, convo.User:
			if held {
				continue
			}
			content, err := p.textAndParts(m)
			if err != nil {
				return nil, nil, err
			}
			s.add(apiStep{Type: "user_input", Content: content})
		case convo.Assistant:
			results := req.Messages[n+1:]
			results = results[:resultsIn(results)]
			if err := s.turn(m, results, n, held); err != nil {
				return nil, nil, err
			}
			n += len(results)
		case convo.Tool:
			return nil, nil, p.errors.InvalidRequest("the result %q does not follow a message that calls tools", m.CallID)
		default:
			return nil, nil, p.errors.InvalidRequest("a message has the unknown role %q", m.Role)
		}
	}
	return s.end(), instructions, nil
}

// turn adds an answer, message n, and the results of its calls, without what the vendor has.
func (s *stepBuilder) turn(m *convo.Message, results []convo.Message, n int, held bool) error {
	ordered, err := s.p.matchResults(m.Calls, results)
	if err != nil {
		return err
	}
	ids := make([]string, len(m.Calls))
	if held { // under the vendor's own ids
		for k, c := range m.Calls {
			s.used[c.ID], ids[k] = true, c.ID
		}
	} else if ids, err = s.answer(m); err != nil {
		return err
	}
	for k, at := range ordered {
		if continuesSession(s.req) && n+1+at < s.req.HeldMessages {
			continue
		}
		if err := s.result(&results[at], ids[k], m.Calls[k].Name); err != nil {
			return err
		}
	}
	return nil
}

// add appends a step unless it is empty.
func (s *stepBuilder) add(step apiStep) {
	if (step.Type == "user_input" || step.Type == "model_output") && len(step.Content) == 0 {
		return
	}
	if len(s.steps) == 0 && !continuesSession(s.req) && step.Type != "user_input" {
		s.steps = append(s.steps, userStep(openingText))
	}
	s.steps = append(s.steps, step)
}

func userStep(text string) apiStep {
	return apiStep{Type: "user_input", Content: []apiContent{{Type: "text", Text: &text}}}
}

// end makes a user step the last one.
func (s *stepBuilder) end() []apiStep {
	switch n := len(s.steps); {
	case n == 0 && !continuesSession(s.req):
		return append(s.steps, userStep(openingText))
	case n == 0 || (s.steps[n-1].Type != "user_input" && s.steps[n-1].Type != "function_result"):
		return append(s.steps, userStep(continueText))
	}
	return s.steps
}

// answer adds an answer and returns the ids of its calls.
func (s *stepBuilder) answer(m *convo.Message) ([]string, error) {
	var ids []string
	n, ok := s.p.unpack(m, apiInteractions, s.req.Model)
	if ok && len(n.Steps) > 0 && partsMatch(n.Steps, m) && s.keepsIDs(m.Calls) {
		for _, part := range n.Steps {
			if part.Call != nil {
				ids = append(ids, s.call(*part.Call))
				continue
			}
			s.verbatim(part)
		}
		return ids, nil
	}
	content, err := s.p.textAndParts(m)
	if err != nil {
		return nil, err
	}
	s.add(apiStep{Type: "model_output", Content: content})
	for _, c := range m.Calls {
		ids = append(ids, s.call(nativeCall{ID: c.ID, Name: c.Name, Args: c.Arguments}))
	}
	return ids, nil
}

// verbatim adds a step of the model unchanged.
func (s *stepBuilder) verbatim(part nativePart) {
	switch {
	case part.Sealed:
		step := apiStep{Type: "thought", Signature: part.Signature}
		if part.Text != nil && *part.Text != "" {
			step.Summary = []apiContent{{Type: "text", Text: part.Text}}
		}
		s.add(step)
	case part.Text != nil && *part.Text != "":
		s.add(apiStep{Type: "model_output", Content: []apiContent{{Type: "text", Text: part.Text}}})
	}
}

// call adds a call and returns its id, which is unique in the interaction.
func (s *stepBuilder) call(c nativeCall) string {
	as := cmp.Or(c.ID, "call")
	for again := 2; s.used[as]; again++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", c.ID, again))
		as = "call_" + hex.EncodeToString(sum[:16])
	}
	s.used[as] = true
	s.add(apiStep{Type: "function_call", ID: as, Name: c.Name, Arguments: llm.NormalizeArguments(c.Args)})
	return as
}

func (s *stepBuilder) result(m *convo.Message, id, tool string) error {
	step := apiStep{Type: "function_result", CallID: id, Name: tool, Result: m.Text, IsError: m.Failed}
	if len(m.Parts) > 0 {
		content, err := s.p.textAndParts(m)
		if err != nil {
			return err
		}
		step.Result = content
	}
	s.add(step)
	return nil
}

// keepsIDs reports whether all calls would keep their ids.
func (s *stepBuilder) keepsIDs(calls []convo.Call) bool {
	return haveDistinctIDs(calls) && !slices.ContainsFunc(calls, func(c convo.Call) bool { return s.used[c.ID] })
}

// textAndParts returns a message's text and parts.
func (p *Provider) textAndParts(m *convo.Message) ([]apiContent, error) {
	var content []apiContent
	if m.Text != "" {
		content = append(content, apiContent{Type: "text", Text: &m.Text})
	}
	for _, part := range m.Parts {
		c, err := p.stepMedia(part)
		if err != nil {
			return nil, err
		}
		content = append(content, c)
	}
	return content, nil
}

// stepMedia converts an image or a file. The API has types for the media that its models accept; a text file is sent
// as text, after its name.
func (p *Provider) stepMedia(part convo.Part) (apiContent, error) {
	if err := p.checkPart(part); err != nil {
		return apiContent{}, err
	}
	mime := mimeOf(part)
	kind, _, _ := strings.Cut(mime, "/")
	switch {
	case kind == "image" || kind == "audio" || kind == "video":
	case mime == "application/pdf" || mime == "text/csv":
		kind = "document"
	case len(part.Data) > 0 && utf8.Valid(part.Data):
		text := strings.TrimPrefix(part.Name+"\n"+string(part.Data), "\n")
		return apiContent{Type: "text", Text: &text}, nil
	default:
		return apiContent{}, p.errors.InvalidRequest("an interaction cannot contain %s: set `history: client`", mime)
	}
	out := apiContent{Type: kind, MIME: mime, URI: part.URL}
	if len(part.Data) > 0 {
		out.Data, out.URI = base64.StdEncoding.EncodeToString(part.Data), ""
	}
	return out, nil
}
