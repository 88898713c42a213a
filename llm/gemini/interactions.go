package gemini

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-run/weir/llm"
)

// interactionRequest is the body of a request that creates an interaction.
type interactionRequest struct {
	Config      *interactionConfig `json:"generation_config,omitempty"`
	Input       []apiStep          `json:"input"`
	Model       string             `json:"model"`
	Previous    string             `json:"previous_interaction_id,omitempty"`
	Format      *interactionFormat `json:"response_format,omitempty"`
	Store       bool               `json:"store"`
	Stream      bool               `json:"stream"`
	Instruction string             `json:"system_instruction,omitempty"`
	Tools       []interactionTool  `json:"tools,omitempty"`
}

type interactionConfig struct {
	MaxOutputTokens int      `json:"max_output_tokens,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	Level           string   `json:"thinking_level,omitempty"`
	Summaries       string   `json:"thinking_summaries,omitempty"`
	// ToolChoice is a mode, or an interactionChoice.
	ToolChoice any `json:"tool_choice,omitempty"`
}

type interactionChoice struct {
	Allowed struct {
		Mode  string   `json:"mode"`
		Tools []string `json:"tools"`
	} `json:"allowed_tools"`
}

type interactionFormat struct {
	Type   string         `json:"type"`
	MIME   string         `json:"mime_type"`
	Schema map[string]any `json:"schema"`
}

type interactionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// usesInteractions reports whether a request needs the Interactions API, because the vendor stores the conversation
// or is asked to.
func usesInteractions(req *llm.Request) bool { return req.KeepSession || continuesSession(req) }

// continuesSession reports whether the vendor has the start of the history. A session is ignored, and everything
// sent, if it has no messages or if no message would be left to send.
func continuesSession(req *llm.Request) bool {
	return req.Session != "" && req.HeldMessages > 0 && req.HeldMessages < len(req.Messages)
}

// interactionBody converts req to an Interactions request. Tools, configuration and instructions apply to one
// interaction and are sent each time.
func (p *Provider) interactionBody(req *llm.Request) (any, error) {
	input, instructions, err := p.steps(req)
	if err != nil {
		return nil, err
	}
	body := &interactionRequest{
		Model: req.Model, Input: input, Store: req.KeepSession, Stream: true, Instruction: strings.Join(instructions, "\n"),
	}
	if continuesSession(req) {
		body.Previous = req.Session
	}
	if body.Config, err = p.interactionConfig(req); err != nil {
		return nil, err
	}
	if body.Tools, err = interactionTools(req); err != nil {
		return nil, err
	}
	if req.Schema != nil {
		body.Format = &interactionFormat{Type: "text", MIME: "application/json", Schema: req.Schema}
	}
	return body, nil
}

// interactionConfig returns nil if there is nothing to configure.
func (p *Provider) interactionConfig(req *llm.Request) (*interactionConfig, error) {
	c := interactionConfig{MaxOutputTokens: max(req.MaxOutput, 0), Temperature: req.Temperature}
	if req.Reasoning != "" {
		var err error
		if c.Level, err = p.interactionLevel(req); err != nil {
			return nil, err
		}
		c.Summaries = "auto"
		if req.Reasoning == "none" || req.Reasoning == "0" {
			c.Summaries = "none"
		}
	}
	if req.ToolChoice != "" && len(req.Tools) > 0 {
		c.ToolChoice = interactionMode(req.ToolChoice)
	}
	if c == (interactionConfig{}) {
		return nil, nil
	}
	return &c, nil
}

// interactionLevel returns req's Reasoning as a level, because this API has no budgets; empty leaves it to the model.
func (p *Provider) interactionLevel(req *llm.Request) (string, error) {
	as := *req
	if budget, ok := tokens(req.Reasoning); ok {
		switch {
		case budget < 0:
			return "", nil
		case budget == 0:
			as.Reasoning = "none"
		case budget <= budgetLow:
			as.Reasoning = "low"
		case budget <= budgetMedium:
			as.Reasoning = "medium"
		default:
			as.Reasoning = "high"
		}
	}
	level, ok := levelOf(&as)
	if !ok {
		return "", p.errors.InvalidRequest("the reasoning %q is invalid: use none, minimal, low, medium, high or a number of tokens", req.Reasoning)
	}
	return strings.ToLower(level), nil
}

// interactionMode converts a tool choice: a mode, or the one tool that may be called.
func interactionMode(choice string) any {
	switch choice {
	case "auto", "none":
		return choice
	case "required":
		return "any"
	}
	var c interactionChoice
	c.Allowed.Mode, c.Allowed.Tools = "any", []string{choice}
	return &c
}

func interactionTools(req *llm.Request) ([]interactionTool, error) {
	var tools []interactionTool
	for _, t := range req.Tools {
		tool := interactionTool{Type: "function", Name: t.Name, Description: t.Description}
		if t.Parameters != nil {
			var err error
			if tool.Parameters, err = json.Marshal(t.Parameters); err != nil {
				return nil, fmt.Errorf("write parameters of %s: %w", t.Name, err)
			}
		}
		tools = append(tools, tool)
	}
	return tools, nil
}
