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
	// openingText stands before a model that speaks first, and where nobody says
	// anything.
	openingText = "(The conversation begins here.)"
	// continueText stands behind a model that spoke last.
	continueText = "Continue."
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

// historyBuilder makes contents of a history.
type historyBuilder struct {
	p        *Provider
	req      *llm.Request
	contents []content
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
			err = p.errors.InvalidRequest("the result %q stands behind no message that calls tools", m.CallID)
		default:
			err = p.errors.InvalidRequest("a message has the role %q", m.Role)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	h.end()
	return h.contents, instructions, nil
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

// end gives the user the last word.
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

// textAndParts is a message's text and parts.
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

// model adds an answer and, right behind it, the results of its calls.
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

// results adds what answers m's calls, which were sent with ids.
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
			if isBeforeGemini3(h.req.Model) { // which take media beside a result and not in it
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

// matchResults says which result answers each call: by id, and by order where ids are
// the same.
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
		return nil, p.errors.InvalidRequest("the result %q answers no call of the message before it", results[at].CallID)
	}
	return ordered, nil
}
