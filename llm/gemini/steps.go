package gemini

import (
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

// wireStep is one step of an interaction's input.
type wireStep struct {
	Type      string          `json:"type"`
	Content   []wireContent   `json:"content,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Summary   []wireContent   `json:"summary,omitempty"`
	ID        string          `json:"id,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    any             `json:"result,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// wireContent is a text or media.
type wireContent struct {
	Type string  `json:"type"`
	Text *string `json:"text,omitempty"`
	Data string  `json:"data,omitempty"`
	MIME string  `json:"mime_type,omitempty"`
	URI  string  `json:"uri,omitempty"`
}

// stepper makes the steps of a history.
type stepper struct {
	p    *Provider
	req  *llm.Request
	made []wireStep
	// sent is the id under which the newest call of an id was sent; used are all.
	sent map[string]string
	used map[string]bool
}

// steps is what the vendor does not have of req's history, and the instructions
// that stand at its front.
func (p *Provider) steps(req *llm.Request) ([]wireStep, []string, error) {
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
	s := &stepper{p: p, req: req, sent: map[string]string{}, used: map[string]bool{}}
	for n := front; n < len(req.Messages); n++ {
		m := &req.Messages[n]
		if goesOn(req) && n < req.Held {
			for _, c := range m.Calls { // the vendor has them under their own ids
				s.used[c.ID] = true
			}
			continue
		}
		if err := s.message(m); err != nil {
			return nil, nil, err
		}
	}
	return s.end(), instructions, nil
}

func (s *stepper) message(m *convo.Message) error {
	switch m.Role {
	case convo.System, convo.User:
		content, err := s.p.said(m)
		if err != nil {
			return err
		}
		s.add(wireStep{Type: "user_input", Content: content})
		return nil
	case convo.Assistant:
		return s.answer(m)
	case convo.Tool:
		return s.result(m)
	}
	return s.p.refused("a message has the role %q", m.Role)
}

// add adds a step; one that says nothing is left out.
func (s *stepper) add(step wireStep) {
	if (step.Type == "user_input" || step.Type == "model_output") && len(step.Content) == 0 {
		return
	}
	if len(s.made) == 0 && !goesOn(s.req) && step.Type != "user_input" {
		s.made = append(s.made, userStep(opening))
	}
	s.made = append(s.made, step)
}

func userStep(text string) wireStep {
	return wireStep{Type: "user_input", Content: []wireContent{{Type: "text", Text: &text}}}
}

// end gives the user the last word.
func (s *stepper) end() []wireStep {
	switch n := len(s.made); {
	case n == 0 && !goesOn(s.req):
		return append(s.made, userStep(opening))
	case n == 0 || (s.made[n-1].Type != "user_input" && s.made[n-1].Type != "function_result"):
		return append(s.made, userStep(further))
	}
	return s.made
}

func (s *stepper) answer(m *convo.Message) error {
	n, ok := s.p.unpack(m, apiInteractions, s.req.Model)
	if ok && len(n.Steps) > 0 && same(n.Steps, m) && s.keeps(m.Calls) {
		for _, part := range n.Steps {
			s.verbatim(part)
		}
		return nil
	}
	content, err := s.p.said(m)
	if err != nil {
		return err
	}
	s.add(wireStep{Type: "model_output", Content: content})
	for _, c := range m.Calls {
		s.add(wireStep{
			Type: "function_call", ID: s.call(c.ID), Name: callable(c.Name), Arguments: object(c.Arguments),
		})
	}
	return nil
}

// verbatim adds a step as the model gave it.
func (s *stepper) verbatim(part nativePart) {
	switch {
	case part.Sealed:
		step := wireStep{Type: "thought", Signature: part.Signature}
		if part.Text != nil && *part.Text != "" {
			step.Summary = []wireContent{{Type: "text", Text: part.Text}}
		}
		s.add(step)
	case part.Call != nil:
		s.add(wireStep{
			Type: "function_call", ID: s.call(part.Call.ID), Name: callable(part.Call.Name), Arguments: object(part.Call.Args),
		})
	case part.Text != nil && *part.Text != "":
		s.add(wireStep{Type: "model_output", Content: []wireContent{{Type: "text", Text: part.Text}}})
	}
}

func (s *stepper) result(m *convo.Message) error {
	step := wireStep{
		Type: "function_result", CallID: orElse(s.sent[m.CallID], m.CallID), Result: m.Text, IsError: m.Failed,
	}
	for _, c := range slices.Backward(s.calls()) {
		if c.ID == m.CallID {
			step.Name = callable(c.Name)
			break
		}
	}
	if len(m.Parts) > 0 {
		content, err := s.p.said(m)
		if err != nil {
			return err
		}
		step.Result = content
	}
	s.add(step)
	return nil
}

// calls are all of the history's, also those that the vendor has.
func (s *stepper) calls() []convo.Call {
	var calls []convo.Call
	for i := range s.req.Messages {
		calls = append(calls, s.req.Messages[i].Calls...)
	}
	return calls
}

// call names a call that is being sent: each has an id of its own in all of the
// interaction. A result belongs to the newest call of its id.
func (s *stepper) call(id string) string {
	as := orElse(id, "call")
	for again := 2; s.used[as]; again++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, again))
		as = "call_" + hex.EncodeToString(sum[:16])
	}
	s.used[as], s.sent[id] = true, as
	return as
}

// keeps says that all calls would keep their ids.
func (s *stepper) keeps(calls []convo.Call) bool {
	return distinct(calls) && !slices.ContainsFunc(calls, func(c convo.Call) bool { return s.used[c.ID] })
}

// said is a message's text and parts.
func (p *Provider) said(m *convo.Message) ([]wireContent, error) {
	var content []wireContent
	if m.Text != "" {
		content = append(content, wireContent{Type: "text", Text: &m.Text})
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

// stepMedia is an image or a file. The API has types for what its models see
// and hear; what is text otherwise is told as one, under its name.
func (p *Provider) stepMedia(part convo.Part) (wireContent, error) {
	if err := p.checkPart(part); err != nil {
		return wireContent{}, err
	}
	mime := mimeOf(part)
	kind, _, _ := strings.Cut(mime, "/")
	switch {
	case kind == "image" || kind == "audio" || kind == "video":
	case mime == "application/pdf" || mime == "text/csv":
		kind = "document"
	case len(part.Data) > 0 && utf8.Valid(part.Data):
		text := strings.TrimPrefix(part.Name+"\n"+string(part.Data), "\n")
		return wireContent{Type: "text", Text: &text}, nil
	default:
		return wireContent{}, p.refused("an interaction takes no %s: set `history: client`", mime)
	}
	out := wireContent{Type: kind, MIME: mime, URI: part.URL}
	if len(part.Data) > 0 {
		out.Data, out.URI = base64.StdEncoding.EncodeToString(part.Data), ""
	}
	return out, nil
}
