package gemini

import (
	"encoding/json"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// Texts of user messages that are sent where the API requires a user content and the history has none.
const (
	// openingText precedes a history that begins with the model, and is the only content of an empty one.
	openingText = "(The conversation begins here.)"
	// continueText follows a history that ends with the model.
	continueText = "Continue."
)

// foreignSignature is the signature that the vendor documents for calls that its models did not sign: histories of
// other models.
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

// historyBuilder converts a history to contents.
type historyBuilder struct {
	p        *Provider
	req      *llm.Request
	contents []content
}

// contents returns req's history, and the instructions at its start.
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
	h := &historyBuilder{p: p, req: req}
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
			err = p.errors.InvalidRequest("the result %q does not follow a message that calls tools", m.CallID)
		default:
			err = p.errors.InvalidRequest("a message has the unknown role %q", m.Role)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	h.end()
	return h.contents, instructions, nil
}

// resultsIn returns the number of results at the start.
func resultsIn(messages []convo.Message) int {
	for n, m := range messages {
		if m.Role != convo.Tool {
			return n
		}
	}
	return len(messages)
}

// add appends parts, to the last content if it has the same role.
func (h *historyBuilder) add(role string, parts ...json.RawMessage) {
	if len(parts) == 0 {
		return
	}
	if len(h.contents) == 0 && role == roleModel {
		h.add(roleUser, textPart(openingText))
	}
	if last := len(h.contents) - 1; last >= 0 && h.contents[last].Role == role {
		h.contents[last].Parts = append(h.contents[last].Parts, parts...)
		return
	}
	h.contents = append(h.contents, content{Role: role, Parts: slices.Clip(parts)})
}

// end makes a user content the last one.
func (h *historyBuilder) end() {
	switch last := len(h.contents) - 1; {
	case last < 0:
		h.add(roleUser, textPart(openingText))
	case h.contents[last].Role == roleModel:
		h.add(roleUser, textPart(continueText))
	}
}

func (h *historyBuilder) user(m *convo.Message) error {
	parts, err := h.textAndParts(m)
	if err != nil {
		return err
	}
	h.add(roleUser, parts...)
	return nil
}

// textAndParts returns a message's text and parts.
func (h *historyBuilder) textAndParts(m *convo.Message) ([]json.RawMessage, error) {
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

// model adds an answer, directly followed by the results of its calls.
func (h *historyBuilder) model(m *convo.Message, results []convo.Message) error {
	parts, ids, ok := h.p.verbatim(m, h.req.Model)
	if !ok {
		var err error
		if parts, err = h.textAndParts(m); err != nil {
			return err
		}
		ids = make([]string, len(m.Calls))
		named := haveDistinctIDs(m.Calls)
		for n, c := range m.Calls {
			signature := ""
			if n == 0 && needsSignatures(h.req.Model) {
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

// results adds the results of m's calls, which were sent with ids.
func (h *historyBuilder) results(m *convo.Message, ids []string, results []convo.Message) error {
	ordered, err := h.p.matchResults(m.Calls, results)
	if err != nil {
		return err
	}
	var parts, beside []json.RawMessage
	for n, c := range m.Calls {
		result := &results[ordered[n]]
		response := &apiResponse{ID: ids[n], Name: c.Name, Response: map[string]string{"output": result.Text}}
		if result.Failed {
			response.Response = map[string]string{"error": result.Text}
		}
		for _, part := range result.Parts {
			if isBeforeGemini3(h.req.Model) { // these accept media next to a result, not in it
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
		parts = append(parts, mustMarshal(apiPart{Response: response}))
	}
	h.add(roleUser, append(parts, beside...)...)
	return nil
}

// matchResults returns which result belongs to which call: by id, and by order for equal ids.
func (p *Provider) matchResults(calls []convo.Call, results []convo.Message) ([]int, error) {
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
			return nil, p.errors.InvalidRequest("the call %q of %s has no result", c.ID, c.Name)
		}
		taken[at], ordered[n] = true, at
	}
	if at := slices.Index(taken, false); at >= 0 {
		return nil, p.errors.InvalidRequest("the result %q belongs to no call of the preceding message", results[at].CallID)
	}
	return ordered, nil
}
