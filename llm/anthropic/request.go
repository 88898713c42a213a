package anthropic

import (
	"strconv"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// defaultOutput is max_tokens, which the API requires, for a request without a limit. It equals what a view reserves
// for an answer without a limit.
const defaultOutput = 16_384

// params converts req to a Messages request.
func (p *Provider) params(req *llm.Request) (*messagesRequest, error) {
	is := traitsOf(req.Model)
	params := &messagesRequest{Model: req.Model, MaxTokens: req.MaxOutput, Stream: true}
	if req.MaxOutput <= 0 {
		params.MaxTokens = min(defaultOutput, is.maxOutput)
	}
	lead := p.system(params, req)
	h, err := p.turns(req, lead)
	if err != nil {
		return nil, err
	}
	p.tools(params, req, h)
	if err := p.setThinking(params, req, is, h); err != nil {
		return nil, err
	}
	thinks := params.Thinking != nil
	if req.Temperature != nil && is.sampling && !thinks {
		t := min(*req.Temperature, 1)
		params.Temperature = &t
	}
	held := false
	if req.Schema != nil {
		held = setAnswerFormat(params, req.Schema, is)
	}
	h.end(is.prefill && !thinks && !held)
	if p.marks {
		setCacheMarks(params, h, req)
	}
	for _, t := range h.turns {
		m := apiMessage{Role: t.role}
		for _, b := range t.all() {
			m.Content = append(m.Content, b.encoded)
		}
		params.Messages = append(params.Messages, m)
	}
	return params, nil
}

// system returns the system texts: that of the request and the leading system messages, whose number it returns too.
func (p *Provider) system(params *messagesRequest, req *llm.Request) (lead int) {
	if !isBlank(req.System) {
		params.System = append(params.System, contentBlock{Type: "text", Text: req.System})
	}
	for _, m := range req.Messages {
		if m.Role != convo.System || len(m.Parts) > 0 {
			break
		}
		if !isBlank(m.Text) {
			params.System = append(params.System, contentBlock{Type: "text", Text: m.Text})
		}
		lead++
	}
	return lead
}

// tools returns the tools of the request. The API requires definitions of the tools that a history calls, even if
// none may be called now: then those tools are defined by name only.
func (p *Provider) tools(params *messagesRequest, req *llm.Request, h *historyBuilder) {
	for _, t := range req.Tools {
		tool := apiTool{Name: t.Name, InputSchema: inputSchema(t.Parameters)}
		if !isBlank(t.Description) {
			tool.Description = t.Description
		}
		params.Tools = append(params.Tools, tool)
	}
	choice := req.ToolChoice
	if len(req.Tools) == 0 {
		choice = ""
		for _, called := range h.called {
			params.Tools = append(params.Tools, apiTool{Name: called, InputSchema: inputSchema(nil)})
			choice = "none"
		}
	}
	switch choice {
	case "":
	case "auto", "none":
		params.ToolChoice = &toolChoice{Type: choice}
	case "required":
		params.ToolChoice = &toolChoice{Type: "any"}
	default:
		params.ToolChoice = &toolChoice{Type: "tool", Name: choice}
	}
}

// inputSchema holds a tool's schema unchanged.
func inputSchema(schema map[string]any) map[string]any {
	if schema == nil {
		return map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return schema
}

// Thinking budgets in tokens: the smallest that the API accepts, and those of the named levels.
const (
	minBudget    = 1024
	lowBudget    = 4096
	mediumBudget = 8192
)

// budgetOf converts a reasoning level, or a number of tokens, to a budget.
func budgetOf(reasoning string) (int, bool) {
	switch reasoning {
	case "none":
		return 0, true
	case "minimal":
		return minBudget, true
	case "low":
		return lowBudget, true
	case "medium":
		return mediumBudget, true
	case "high":
		return 16_384, true
	case "xhigh":
		return 24_576, true
	case "max":
		return 32_000, true
	}
	n, err := strconv.ParseInt(reasoning, 10, 32)
	return int(n), err == nil && n >= 0
}

// setThinking enables thinking, unless the API would refuse it: with a forced tool, in the middle of a turn that
// began without it (for models with budgets), or if max_tokens has no room for it.
func (p *Provider) setThinking(params *messagesRequest, req *llm.Request, is modelTraits, h *historyBuilder) error {
	if req.Reasoning == "" {
		return nil
	}
	budget, known := budgetOf(req.Reasoning)
	if !known {
		return p.errors.InvalidRequest("the reasoning %q is invalid: use none, minimal, low, medium, high, xhigh, max or a number of tokens", req.Reasoning)
	}
	switch {
	case budget == 0 || params.ToolChoice.forced():
	case is.adaptive:
		params.Thinking = &thinking{Type: "adaptive", Display: "summarized"}
		params.OutputConfig = &outputConfig{Effort: effort(req.Reasoning, budget, is.maxEffort)}
	case h.inToolTurn() || params.MaxTokens <= minBudget:
	default:
		budget = max(minBudget, min(budget, params.MaxTokens*3/4))
		params.Thinking = &thinking{Type: "enabled", Budget: budget}
	}
	return nil
}

// effort maps a reasoning level to an effort that the model accepts.
func effort(word string, budget int, most string) string {
	switch {
	case word == "minimal" || budget <= lowBudget:
		return "low"
	case budget <= mediumBudget:
		return "medium"
	case word == "xhigh" && most == "xhigh":
		return "xhigh"
	case word == "max" && most != "high":
		return "max"
	}
	return "high"
}
