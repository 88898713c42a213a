package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/weir-run/weir/llm"
)

// CheckAnthropic returns the rules of Anthropic's Messages API that a request's body breaks, none if it is valid: the
// schema of the API reference, and the rules of the vendor's guides for tools, thinking, caching, structured outputs
// and the differences of models. Any signature of a thought is accepted; a Server refuses those that it has not
// issued.
func CheckAnthropic(body []byte) []string {
	r, _ := newAnthropicAPI().check(body, nil)
	return r.problems
}

// anthropicBodyLimit is the largest request, in bytes ("Errors", request size).
const anthropicBodyLimit = 32 << 20

// check checks a body; if known is nil, signatures are not checked.
func (w anthropicAPI) check(body []byte, known issuedIDs) (*anthropicRules, *anthropicBody) {
	r := &anthropicRules{known: known}
	b := &r.body
	if len(body) > anthropicBodyLimit {
		r.broken("the request is larger than 32 MB")
	}
	r.shape(w.schema, body)
	if len(r.problems) > 0 {
		return r, b
	}
	if err := json.Unmarshal(body, b); err != nil {
		r.broken("%v", err)
		return r, b
	}
	r.claude = claudeOf(b.Model)
	r.marks()
	r.words("system", b.System)
	r.turns()
	r.choice()
	r.thinking()
	r.sampling()
	r.format()
	r.ending()
	return r, b
}

// anthropicRules checks one request.
type anthropicRules struct {
	rules
	body   anthropicBody
	known  issuedIDs
	claude int
}

// claudeOf returns the version in a model's name: 405 for claude-opus-4-5, 0 for a model that is not a Claude.
func claudeOf(model string) int {
	_, rest, ok := strings.Cut(model, "claude-")
	if !ok {
		return 0
	}
	var numbers []int
	for word := range strings.SplitSeq(rest, "-") {
		var n int
		if _, err := fmt.Sscanf(word, "%d", &n); err == nil && n < 100 {
			numbers = append(numbers, n)
		} else if len(numbers) > 0 {
			break
		}
	}
	switch len(numbers) {
	case 0:
		return 9999
	case 1:
		return numbers[0] * 100
	}
	return numbers[0]*100 + numbers[1]
}

// marks checks the cache marks ("Prompt caching"): at most four, none on thinking.
func (r *anthropicRules) marks() {
	n := 0
	count := func(m *struct{}) {
		if m != nil {
			n++
		}
	}
	count(r.body.Mark)
	for _, t := range r.body.Tools {
		count(t.Mark)
	}
	for _, s := range r.body.System {
		count(s.Mark)
	}
	for _, m := range r.body.Messages {
		for _, b := range m.Content {
			count(b.Mark)
			for _, c := range b.Content {
				count(c.Mark)
			}
		}
	}
	if n > 4 {
		r.broken("a maximum of 4 blocks with cache_control may be provided, found %d", n)
	}
}

// words checks that texts are not blank.
func (r *anthropicRules) words(where string, blocks []anthropicBlock) {
	for n, b := range blocks {
		if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
			r.broken("%s[%d]: text content blocks must contain non-whitespace text", where, n)
		}
		if b.Type == "image" && b.Source.Type == "base64" {
			if data, err := base64.StdEncoding.DecodeString(b.Source.Data); err == nil && len(data) > 10<<20 {
				r.broken("%s[%d]: image exceeds 10 MB maximum", where, n)
			}
		}
		r.words(fmt.Sprintf("%s[%d].content", where, n), b.Content)
	}
}

// merged joins consecutive messages of one role, as the API does.
func (r *anthropicRules) merged() []anthropicMessage {
	var out []anthropicMessage
	for _, m := range r.body.Messages {
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Content = append(slices.Clip(out[n-1].Content), m.Content...)
			continue
		}
		out = append(out, m)
	}
	return out
}

// turns checks the order of messages and the pairing of calls and results
// ("Handle tool calls").
func (r *anthropicRules) turns() {
	seen := map[string]bool{}
	var open []string
	for n, m := range r.merged() {
		where := fmt.Sprintf("messages[%d]", n)
		r.words(where, m.Content)
		if n == 0 && m.Role != "user" {
			r.broken("messages: first message must use the \"user\" role")
		}
		if m.Role == "user" {
			r.results(where, m.Content, open)
			open = nil
			continue
		}
		open = r.answer(where, m.Content, seen)
	}
	for _, id := range open {
		r.broken("messages: `tool_use` id %s has no `tool_result` after it", id)
	}
	if len(seen) > 0 && len(r.body.Tools) == 0 {
		r.broken("requests which include `tool_use` or `tool_result` blocks must define tools")
	}
}

// answer checks an assistant's turn and returns the ids of its calls.
func (r *anthropicRules) answer(where string, blocks []anthropicBlock, seen map[string]bool) (open []string) {
	for k, b := range blocks {
		thought, issued := r.known["thought:"+b.Signature]
		switch {
		case b.Type == "thinking" && r.known != nil && (!issued || thought != b.Thinking):
			r.broken("%s.content[%d]: invalid `signature` in `thinking` block", where, k)
		case b.Type == "tool_use" && seen[b.ID]:
			r.broken("%s.content[%d]: `tool_use` ids must be unique: %s", where, k, b.ID)
		case b.Type == "tool_use":
			seen[b.ID] = true
			open = append(open, b.ID)
		}
	}
	if blocks[len(blocks)-1].thinks() {
		r.broken("%s: the final block in an assistant message cannot be `thinking`", where)
	}
	return open
}

// results checks a user's turn against the calls of the turn before.
func (r *anthropicRules) results(where string, blocks []anthropicBlock, open []string) {
	waiting := map[string]bool{}
	for _, id := range open {
		waiting[id] = true
	}
	other := false
	for k, b := range blocks {
		if b.Type != "tool_result" {
			other = true
			continue
		}
		if other {
			r.broken("%s.content[%d]: tool results must come first in the content", where, k)
		}
		if !waiting[b.CallID] {
			r.broken("%s.content[%d]: unexpected `tool_use_id` in `tool_result`: %s", where, k, b.CallID)
		}
		delete(waiting, b.CallID)
		if !b.Failed {
			continue
		}
		if len(b.Content) == 0 {
			r.broken("%s.content[%d]: content cannot be empty if `is_error` is true", where, k)
		}
		for _, c := range b.Content {
			if c.Type != "text" {
				r.broken("%s.content[%d]: all content must be of type \"text\" if `is_error` is true", where, k)
			}
		}
	}
	for _, id := range open {
		if waiting[id] {
			r.broken("%s: `tool_use` ids were found without `tool_result` blocks immediately after: %s", where, id)
		}
	}
}

// choice checks tools and the choice among them.
func (r *anthropicRules) choice() {
	var tools []llm.Tool
	for _, t := range r.body.Tools {
		tools = append(tools, llm.Tool{Name: t.Name, Parameters: t.Schema})
		properties, _ := t.Schema["properties"].(map[string]any)
		for name := range properties {
			if !regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`).MatchString(name) {
				r.broken("tools: input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'; got %q", name)
			}
		}
	}
	r.tools(tools, make([]bool, len(tools)), nil)
	c := r.body.Choice
	if c == nil {
		return
	}
	if len(tools) == 0 {
		r.broken("tool_choice may only be specified while providing tools")
	}
	known := c.Type != "tool"
	for _, t := range tools {
		known = known || t.Name == c.Name
	}
	if !known {
		r.broken("tool_choice: tool '%s' not found in provided tools", c.Name)
	}
}

// thinking checks what goes with it ("Extended thinking", "Adaptive thinking").
func (r *anthropicRules) thinking() {
	t := r.body.Thinking
	if t == nil || t.Type == "disabled" {
		return
	}
	switch {
	case t.Type == "enabled" && r.claude >= 407:
		r.broken("\"thinking.type.enabled\" is not supported for this model")
	case t.Type == "adaptive" && r.claude < 406:
		r.broken("adaptive thinking is not supported on this model")
	case t.Type == "enabled" && t.Budget >= r.body.MaxTokens:
		r.broken("`max_tokens` must be greater than `thinking.budget_tokens`")
	}
	if c := r.body.Choice; c != nil && (c.Type == "any" || c.Type == "tool") {
		r.broken("thinking may not be enabled when tool_choice forces tool use")
	}
	if r.body.Temperature != nil && *r.body.Temperature != 1 {
		r.broken("`temperature` may only be set to 1 when thinking is enabled")
	}
	if r.body.TopK != nil || (r.body.TopP != nil && *r.body.TopP < 0.95) {
		r.broken("`top_k` and a `top_p` below 0.95 may not be set when thinking is enabled")
	}
	messages := r.merged()
	last := messages[len(messages)-1]
	if last.Role == "assistant" && !last.pausable() {
		r.broken("a response cannot be pre-filled when thinking is enabled")
	}
	if t.Type == "enabled" && len(messages) > 1 && last.Content[0].Type == "tool_result" {
		if b := messages[len(messages)-2].Content[0]; !b.thinks() {
			r.broken("messages[%d].content[0]: expected `thinking` or `redacted_thinking`, but found `%s`", len(messages)-2, b.Type)
		}
	}
}

// pausable reports whether a turn ends in the output of the vendor's own tools, after which the model continues.
func (m anthropicMessage) pausable() bool {
	b := m.Content[len(m.Content)-1]
	return b.Type == "server_tool_use" || strings.HasSuffix(b.Type, "_tool_result")
}

// sampling checks parameters that not every model accepts.
func (r *anthropicRules) sampling() {
	if r.claude >= 407 && (r.body.Temperature != nil || r.body.TopK != nil || r.body.TopP != nil) {
		r.broken("`temperature`, `top_p` and `top_k` are not supported for this model")
	}
	switch e := r.body.Output.Effort; {
	case e == "":
	case r.claude > 0 && r.claude < 405:
		r.broken("effort is not supported for this model")
	case e == "xhigh" && r.claude < 407, e == "max" && r.claude < 406:
		r.broken("effort %q is not supported for this model", e)
	}
}

// ending checks a history that ends with the assistant.
func (r *anthropicRules) ending() {
	messages := r.body.Messages
	last := messages[len(messages)-1]
	if last.Role != "assistant" || last.pausable() {
		return
	}
	if r.claude >= 406 {
		r.broken("this model does not support assistant message prefill; the conversation must end with a user message")
	}
	if r.body.Output.Format != nil {
		r.broken("message prefilling is incompatible with JSON outputs")
	}
	b := last.Content[len(last.Content)-1]
	if b.Type == "text" && b.Text != strings.TrimRightFunc(b.Text, unicode.IsSpace) {
		r.broken("messages: final assistant content cannot end with trailing whitespace")
	}
}

// format checks the schema of an answer ("Structured outputs").
func (r *anthropicRules) format() {
	f := r.body.Output.Format
	if f == nil {
		return
	}
	if r.claude < 405 && r.claude != 401 {
		r.broken("output_config.format is not supported for this model")
	}
	if _, err := compile("weir:format", []byte(encode(f.Schema))); err != nil {
		r.broken("invalid schema for output_config.format: %v", err)
	}
	if f.Schema["type"] != "object" {
		r.broken("invalid schema for output_config.format: it must be of type \"object\"")
	}
	r.answerSchema(f.Schema)
}

// answerSchema checks one schema against the keywords that the guide names.
func (r *anthropicRules) answerSchema(schema map[string]any) {
	if schema["type"] == "object" && schema["additionalProperties"] != false {
		r.broken("output_config.format: for 'object' type, 'additionalProperties' must be explicitly set to false")
	}
	for key, value := range schema {
		switch key {
		case "properties", "$defs", "definitions":
			parts, _ := value.(map[string]any)
			for _, p := range parts {
				r.answerPart(p)
			}
		case "anyOf", "allOf":
			list, _ := value.([]any)
			for _, p := range list {
				r.answerPart(p)
			}
		case "items":
			r.answerPart(value)
		case "minItems":
			if value != float64(0) && value != float64(1) {
				r.broken("output_config.format: minItems %v is not supported", value)
			}
		case "type", "title", "description", "const", "enum", "required", "additionalProperties", "$ref", "format", "pattern", "default":
		default:
			r.broken("output_config.format: %q is not supported", key)
		}
	}
}

func (r *anthropicRules) answerPart(v any) {
	if part, ok := v.(map[string]any); ok {
		r.answerSchema(part)
	}
}
