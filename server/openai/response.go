package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/session"
)

// responseBody is a request for a response. Raw members are refused unless they say the same
// as none, or are hints that change no answer.
type responseBody struct {
	Model              string          `json:"model"`
	Input              json.RawMessage `json:"input"`
	Instructions       string          `json:"instructions"`
	Stream             bool            `json:"stream"`
	StreamOptions      json.RawMessage `json:"stream_options"`
	Background         bool            `json:"background"`
	PreviousResponseID string          `json:"previous_response_id"`
	Conversation       json.RawMessage `json:"conversation"`
	Metadata           map[string]any  `json:"metadata"`
	Store              *bool           `json:"store"`
	caller
	settings
	MaxOutputTokens int `json:"max_output_tokens"`
	Reasoning       struct {
		Effort          string          `json:"effort"`
		Summary         json.RawMessage `json:"summary"`
		GenerateSummary json.RawMessage `json:"generate_summary"`
	} `json:"reasoning"`
	Include              json.RawMessage `json:"include"`
	ServiceTier          json.RawMessage `json:"service_tier"`
	PromptCacheKey       json.RawMessage `json:"prompt_cache_key"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention"`
	ParallelToolCalls    json.RawMessage `json:"parallel_tool_calls"`
	Truncation           json.RawMessage `json:"truncation"`
	TopP                 json.RawMessage `json:"top_p"`
	TopLogprobs          json.RawMessage `json:"top_logprobs"`
	Text                 struct {
		Format    json.RawMessage `json:"format"`
		Verbosity json.RawMessage `json:"verbosity"`
	} `json:"text"`
	Tools        json.RawMessage `json:"tools"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	MaxToolCalls json.RawMessage `json:"max_tool_calls"`
	Prompt       json.RawMessage `json:"prompt"`
}

// check refuses what would have no effect.
func (b *responseBody) check() error {
	for _, x := range []struct {
		name    string
		value   json.RawMessage
		neutral []string
	}{
		{"top_p", b.TopP, []string{"1", "1.0"}},
		{"top_logprobs", b.TopLogprobs, []string{"0"}},
		{"truncation", b.Truncation, []string{`"disabled"`, `"auto"`}},
		{"text.verbosity", b.Text.Verbosity, []string{`"medium"`}},
		{"max_tool_calls", b.MaxToolCalls, nil},
		{"prompt", b.Prompt, nil},
	} {
		if err := refuse(x.name, x.value, x.neutral...); err != nil {
			return err
		}
	}
	switch {
	case b.Background && b.Store != nil && !*b.Store:
		return server.InvalidRequest("body.store", "a response in the background is read with GET, so it must be stored")
	case b.PreviousResponseID != "" && b.conversation() != "":
		return server.InvalidRequest("body.conversation", "previous_response_id and conversation exclude each other")
	}
	return nil
}

// conversation returns the id of the conversation of the request, "" for none.
func (b *responseBody) conversation() string {
	var id string
	if len(b.Conversation) > 0 && json.Unmarshal(b.Conversation, &id) != nil {
		var o struct{ ID string }
		_ = json.Unmarshal(b.Conversation, &o) // without an id there is none
		id = o.ID
	}
	return id
}

// item is an item of the input of a response, or of a conversation.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// messagesOf reads a text, or a list of items.
func messagesOf(place string, raw json.RawMessage) (list []convo.Message, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []convo.Message{{Role: convo.User, Text: text}}, nil
	}
	var items []item
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, server.InvalidRequest(place, "expected a text or a list of items")
	}
	for i := range items {
		x, at := &items[i], place+"."+itoa(i)
		var m chatMessage
		switch x.Type {
		case "", "message":
			m = chatMessage{Role: x.Role, Content: x.Content}
		case "reasoning": // is for the model that wrote it
			continue
		case "function_call":
			call := convo.Call{ID: x.CallID, Name: x.Name, Arguments: x.Arguments}
			if n := len(list); n > 0 && list[n-1].Role == convo.Assistant { // of the same answer
				list[n-1].Calls = append(slices.Clip(list[n-1].Calls), call)
			} else {
				list = append(list, convo.Message{Role: convo.Assistant, Calls: []convo.Call{call}})
			}
			continue
		case "function_call_output":
			m = chatMessage{Role: "tool", ToolCallID: x.CallID, Content: x.Output}
		default:
			return nil, server.InvalidRequest(at, "items of type "+x.Type+" are not supported")
		}
		one, err := m.message(at)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// responseRecord is what the server keeps of a response.
type responseRecord struct {
	Token string `json:"token"` // that asked for it
	Flow  string `json:"flow"`
	// Message is the id of the message in the session.
	Message    string `json:"message"`
	Background bool   `json:"background,omitempty"`
	// Spoken means that the text is all that the round says, as it is streamed, and not its last message alone. Ends are the
	// ends of its texts.
	Spoken bool  `json:"spoken,omitempty"`
	Ends   []int `json:"ends,omitempty"`
	// Start is where a response that took outputs of functions began: no message of the session finds it.
	Start *session.ReplyStart `json:"start,omitempty"`
	At    *position           `json:"at,omitempty"` // where the session was when it was complete
	// Input are the messages of the request, oldest first.
	Input []convo.Message `json:"input,omitempty"`
	// Demands are those on the answer.
	Demands *convo.AnswerDemands `json:"demands,omitempty"`
	Object  map[string]any       `json:"object"`
}

// Kinds of documents of responses.
const (
	kindResponse     = "openai.response"     // by message
	kindConversation = "openai.conversation" // by id
)

// object returns the response object of an exchange that is not complete.
func (b *responseBody) object(x *exchange, status string) map[string]any {
	metadata := b.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	o := map[string]any{
		"id": x.responseID(), "object": "response", "created_at": x.at.Unix(), "status": status, "model": x.flow.Name,
		"background": b.Background, "instructions": orNull(b.Instructions), "metadata": metadata, "output": []any{},
		"previous_response_id": orNull(b.PreviousResponseID), "error": nil, "incomplete_details": nil,
		"parallel_tool_calls": true, "tools": []any{}, "tool_choice": "auto", "temperature": b.Temperature, "top_p": nil,
		"max_output_tokens": nil, "text": map[string]any{"format": map[string]any{"type": "text"}}, "truncation": "disabled",
		"store": b.Store == nil || *b.Store, "usage": nil, "conversation": nil,
		"reasoning": map[string]any{"effort": orNull(b.Reasoning.Effort), "summary": nil},
	}
	if b.MaxOutputTokens > 0 {
		o["max_output_tokens"] = b.MaxOutputTokens
	}
	if x.tools != nil {
		o["tools"] = b.Tools
	}
	if choice := string(b.ToolChoice); choice != "" && choice != "null" {
		o["tool_choice"] = b.ToolChoice
	}
	if x.demands != nil && x.demands.Schema != nil {
		o["text"] = map[string]any{"format": b.Text.Format}
	}
	if id := b.conversation(); id != "" {
		o["conversation"] = map[string]any{"id": id}
	}
	return o
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// responseID is made of the id of the message.
func (x *exchange) responseID() string { return "resp_" + strings.TrimPrefix(x.id(), "chatcmpl-") }

// complete fills a response object with the result of the round.
func (x *exchange) complete(o map[string]any, state *stateOf, failure error) {
	if failure != nil {
		p := x.c.ProblemOf(failure)
		o["status"], o["error"] = "failed", map[string]any{"code": p.Code, "message": errorOf(p).Message}
		if state != nil && state.cancelled() {
			o["status"], o["error"] = "cancelled", nil
		}
		return
	}
	o["status"], o["completed_at"] = "completed", now()
	o["output"] = outputOf(o, state.text, x.calls(state.ReplyState))
	o["usage"] = responseUsage(state)
}

// messageItem returns the one output of a response.
func messageItem(o map[string]any, text, status string) map[string]any {
	content := []any{}
	if status == "completed" {
		content = append(content, textPart(text))
	}
	id, _ := o["id"].(string)
	return map[string]any{"id": "msg_" + strings.TrimPrefix(id, "resp_"), "type": "message", "role": "assistant", "status": status, "content": content}
}

func textPart(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}
