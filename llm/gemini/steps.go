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
	// used are the ids of all calls.
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
	s := &stepper{p: p, req: req, used: map[string]bool{}}
	for n := front; n < len(req.Messages); n++ {
		m := &req.Messages[n]
		held := goesOn(req) && n < req.Held
		switch m.Role {
		case convo.System, convo.User:
			if held {
				continue
			}
			content, err := p.said(m)
			if err != nil {
				return nil, nil, err
			}
			s.add(wireStep{Type: "user_input", Content: content})
		case convo.Assistant:
			results := req.Messages[n+1:]
			results = results[:resultsIn(results)]
			if err := s.turn(m, results, n, held); err != nil {
				return nil, nil, err
			}
			n += len(results)
		case convo.Tool:
			return nil, nil, p.speaker.Refused("the result %q stands behind no message that calls tools", m.CallID)
		default:
			return nil, nil, p.speaker.Refused("a message has the role %q", m.Role)
		}
	}
	return s.end(), instructions, nil
}

// turn adds an answer, the n-th message, and the results of its calls, less
// what the vendor has.
func (s *stepper) turn(m *convo.Message, results []convo.Message, n int, held bool) error {
	ordered, err := s.p.pair(m.Calls, results)
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
		if goesOn(s.req) && n+1+at < s.req.Held {
			continue
		}
		if err := s.result(&results[at], ids[k], m.Calls[k].Name); err != nil {
			return err
		}
	}
	return nil
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

// answer adds an answer and returns the ids of its calls.
func (s *stepper) answer(m *convo.Message) ([]string, error) {
	var ids []string
	n, ok := s.p.unpack(m, apiInteractions, s.req.Model)
	if ok && len(n.Steps) > 0 && same(n.Steps, m) && s.keeps(m.Calls) {
		for _, part := range n.Steps {
			if part.Call != nil {
				ids = append(ids, s.call(*part.Call))
				continue
			}
			s.verbatim(part)
		}
		return ids, nil
	}
	content, err := s.p.said(m)
	if err != nil {
		return nil, err
	}
	s.add(wireStep{Type: "model_output", Content: content})
	for _, c := range m.Calls {
		ids = append(ids, s.call(nativeCall{ID: c.ID, Name: c.Name, Args: c.Arguments}))
	}
	return ids, nil
}

// verbatim adds a step of the model's as it gave it.
func (s *stepper) verbatim(part nativePart) {
	switch {
	case part.Sealed:
		step := wireStep{Type: "thought", Signature: part.Signature}
		if part.Text != nil && *part.Text != "" {
			step.Summary = []wireContent{{Type: "text", Text: part.Text}}
		}
		s.add(step)
	case part.Text != nil && *part.Text != "":
		s.add(wireStep{Type: "model_output", Content: []wireContent{{Type: "text", Text: part.Text}}})
	}
}

// call adds a call and returns its id: each has one of its own in all of the
// interaction.
func (s *stepper) call(c nativeCall) string {
	as := cmp.Or(c.ID, "call")
	for again := 2; s.used[as]; again++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", c.ID, again))
		as = "call_" + hex.EncodeToString(sum[:16])
	}
	s.used[as] = true
	s.add(wireStep{Type: "function_call", ID: as, Name: c.Name, Arguments: llm.SentArguments(c.Args)})
	return as
}

func (s *stepper) result(m *convo.Message, id, tool string) error {
	step := wireStep{Type: "function_result", CallID: id, Name: tool, Result: m.Text, IsError: m.Failed}
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
		return wireContent{}, p.speaker.Refused("an interaction takes no %s: set `history: client`", mime)
	}
	out := wireContent{Type: kind, MIME: mime, URI: part.URL}
	if len(part.Data) > 0 {
		out.Data, out.URI = base64.StdEncoding.EncodeToString(part.Data), ""
	}
	return out, nil
}
