package gemini

import (
	"encoding/json"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// What the user is made to say where the API wants a content of the user's and
// the history has none.
const (
	// opening stands before a model that speaks first, and where nobody says
	// anything.
	opening = "(The conversation begins here.)"
	// further stands behind a model that spoke last.
	further = "Continue."
)

// foreignSignature is what the vendor documents for calls that it did not
// sign: histories of other models.
const foreignSignature = "skip_thought_signature_validator"

const (
	roleUser  = "user"
	roleModel = "model"
)

// content is one entry of contents; its parts are written one by one.
type content struct {
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`
}

// historian makes contents of a history.
type historian struct {
	p    *Provider
	req  *llm.Request
	made []content
}

// contents is req's history, and the instructions that stand at its front.
func (p *Provider) contents(req *llm.Request) ([]content, []string, error) {
	var instructions []string
	if req.System != "" {
		instructions = append(instructions, req.System)
	}
	messages := req.Messages
	for len(messages) > 0 && messages[0].Role == convo.System {
		if messages[0].Text != "" {
			instructions = append(instructions, messages[0].Text)
		}
		messages = messages[1:]
	}
	h := &historian{p: p, req: req}
	for n := 0; n < len(messages); n++ {
		m := &messages[n]
		var err error
		switch m.Role {
		case convo.System, convo.User:
			err = h.user(m)
		case convo.Assistant:
			results := messages[n+1:]
			results = results[:resultsIn(results)]
			n += len(results)
			err = h.model(m, results)
		case convo.Tool:
			err = p.speaker.Refused("the result %q stands behind no message that calls tools", m.CallID)
		default:
			err = p.speaker.Refused("a message has the role %q", m.Role)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	h.end()
	return h.made, instructions, nil
}

// resultsIn counts the results at the front.
func resultsIn(messages []convo.Message) int {
	for n, m := range messages {
		if m.Role != convo.Tool {
			return n
		}
	}
	return len(messages)
}

// add puts parts at the end, in the content of the role before if it is the
// same.
func (h *historian) add(role string, parts ...json.RawMessage) {
	if len(parts) == 0 {
		return
	}
	if len(h.made) == 0 && role == roleModel {
		h.add(roleUser, textPart(opening))
	}
	if last := len(h.made) - 1; last >= 0 && h.made[last].Role == role {
		h.made[last].Parts = append(h.made[last].Parts, parts...)
		return
	}
	h.made = append(h.made, content{Role: role, Parts: slices.Clip(parts)})
}

// end gives the user the last word.
func (h *historian) end() {
	switch last := len(h.made) - 1; {
	case last < 0:
		h.add(roleUser, textPart(opening))
	case h.made[last].Role == roleModel:
		h.add(roleUser, textPart(further))
	}
}

func (h *historian) user(m *convo.Message) error {
	parts, err := h.words(m)
	if err != nil {
		return err
	}
	h.add(roleUser, parts...)
	return nil
}

// words is a message's text and parts.
func (h *historian) words(m *convo.Message) ([]json.RawMessage, error) {
	var parts []json.RawMessage
	if m.Text != "" {
		parts = append(parts, textPart(m.Text))
	}
	for _, part := range m.Parts {
		raw, err := h.p.mediaPart(part, "")
		if err != nil {
			return nil, err
		}
		parts = append(parts, raw)
	}
	return parts, nil
}

// model adds an answer and, right behind it, the results of its calls.
func (h *historian) model(m *convo.Message, results []convo.Message) error {
	parts, ids, ok := h.p.verbatim(m, h.req.Model)
	if !ok {
		var err error
		if parts, err = h.words(m); err != nil {
			return err
		}
		ids = make([]string, len(m.Calls))
		named := distinct(m.Calls)
		for n, c := range m.Calls {
			signature := ""
			if n == 0 && signs(h.req.Model) {
				signature = foreignSignature
			}
			if named {
				ids[n] = c.ID
			}
			parts = append(parts, callPart(ids[n], c.Name, c.Arguments, signature))
		}
	}
	h.add(roleModel, parts...)
	return h.results(m, ids, results)
}

// results adds what answers m's calls, which were sent with ids.
func (h *historian) results(m *convo.Message, ids []string, results []convo.Message) error {
	ordered, err := h.p.pair(m.Calls, results)
	if err != nil {
		return err
	}
	var parts, beside []json.RawMessage
	for n, c := range m.Calls {
		result := &results[ordered[n]]
		response := &wireResponse{ID: ids[n], Name: c.Name, Response: map[string]string{"output": result.Text}}
		if result.Failed {
			response.Response = map[string]string{"error": result.Text}
		}
		for _, part := range result.Parts {
			if older(h.req.Model) { // which take media beside a result and not in it
				raw, err := h.p.mediaPart(part, "")
				if err != nil {
					return err
				}
				beside = append(beside, raw)
				continue
			}
			in, err := h.p.media(part)
			if err != nil {
				return err
			}
			response.Parts = append(response.Parts, in)
		}
		parts = append(parts, written(wirePart{Response: response}))
	}
	h.add(roleUser, append(parts, beside...)...)
	return nil
}

// pair says which result answers each call: by id, and by order where ids are
// the same.
func (p *Provider) pair(calls []convo.Call, results []convo.Message) ([]int, error) {
	ordered := make([]int, len(calls))
	taken := make([]bool, len(results))
	for n, c := range calls {
		at := -1
		for k := range results {
			if !taken[k] && results[k].CallID == c.ID {
				at = k
				break
			}
		}
		if at < 0 {
			return nil, p.speaker.Refused("the call %q of %s has no result", c.ID, c.Name)
		}
		taken[at], ordered[n] = true, at
	}
	if at := slices.Index(taken, false); at >= 0 {
		return nil, p.speaker.Refused("the result %q answers no call of the message before it", results[at].CallID)
	}
	return ordered, nil
}
