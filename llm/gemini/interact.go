package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/genai/interactions/models/interactions"
	"google.golang.org/genai/interactions/models/operations"
	"google.golang.org/genai/interactions/retry"

	"github.com/weir-run/weir/llm"
)

// interacts says that a request is one for the Interactions API: the vendor is
// to keep the conversation, or has kept it.
func interacts(req *llm.Request) bool { return req.Keep || goesOn(req) }

// goesOn says that the vendor has the front of the history. A session that
// holds nothing or leaves nothing to say is not used, and all is sent.
func goesOn(req *llm.Request) bool {
	return req.Session != "" && req.Held > 0 && req.Held < len(req.Messages)
}

// interact sends req to the Interactions API. What is no conversation (tools,
// configuration, instructions) holds for one interaction and is sent each time.
func (p *Provider) interact(ctx context.Context, req *llm.Request) error {
	input, instructions, err := p.steps(req)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("write input: %w", err)
	}
	in := interactions.NewInteractionsInputUnknown(raw)
	streamed := true
	body := interactions.CreateModelInteraction{
		Model: interactions.Model(req.Model), Input: &in, Store: &req.Keep, Stream: &streamed,
	}
	if goesOn(req) {
		body.PreviousInteractionID = &req.Session
	}
	if len(instructions) > 0 {
		text := strings.Join(instructions, "\n")
		body.SystemInstruction = &text
	}
	if body.GenerationConfig, err = p.interactionConfig(req); err != nil {
		return err
	}
	if body.Tools, err = interactionTools(req); err != nil {
		return err
	}
	if req.Schema != nil {
		raw, err := json.Marshal(map[string]any{"type": "text", "mime_type": "application/json", "schema": req.Schema})
		if err != nil {
			return fmt.Errorf("write schema: %w", err)
		}
		format := interactions.NewCreateModelInteractionResponseFormat(interactions.NewResponseFormatUnknown(raw))
		body.ResponseFormat = &format
	}
	_, err = p.client.Interactions.Create(ctx,
		operations.CreateInteractionRequest{Body: operations.NewCreateInteractionRequestBody(body)},
		operations.WithRetries(retry.Config{Strategy: "none"}), // the service retries, and journals it
		operations.WithAutomaticContinuation(false),
	)
	return err
}

// interactionConfig is nil where there is nothing to configure.
func (p *Provider) interactionConfig(req *llm.Request) (*interactions.GenerationConfig, error) {
	c := &interactions.GenerationConfig{}
	set := false
	if req.Temperature != nil {
		t := float32(*req.Temperature)
		c.Temperature, set = &t, true //nolint:staticcheck // deprecated, and read
	}
	if req.MaxOutput > 0 {
		limit := req.MaxOutput
		c.MaxOutputTokens, set = &limit, true
	}
	if req.Reasoning != "" {
		level, err := p.interactionLevel(req)
		if err != nil {
			return nil, err
		}
		summaries := interactions.ThinkingSummariesAuto
		if req.Reasoning == "none" || req.Reasoning == "0" {
			summaries = interactions.ThinkingSummariesNone
		}
		c.ThinkingLevel, c.ThinkingSummaries, set = level, &summaries, true
	}
	if req.ToolChoice != "" && len(req.Tools) > 0 {
		choice := interactionChoice(req.ToolChoice)
		c.ToolChoice, set = &choice, true
	}
	if !set {
		return nil, nil
	}
	return c, nil
}

// interactionLevel is req's Reasoning as a level, since this API knows no
// budgets; nil leaves it to the model.
func (p *Provider) interactionLevel(req *llm.Request) (*interactions.ThinkingLevel, error) {
	as := *req
	if budget, ok := tokens(req.Reasoning); ok {
		switch {
		case budget < 0:
			return nil, nil
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
		return nil, p.speaker.Refused("the reasoning %q is neither none, minimal, low, medium or high nor a number of tokens", req.Reasoning)
	}
	out := interactions.ThinkingLevel(strings.ToLower(string(level)))
	return &out, nil
}

func interactionChoice(choice string) interactions.ToolChoice {
	switch choice {
	case "auto":
		return interactions.NewToolChoice(interactions.ToolChoiceTypeAuto)
	case "none":
		return interactions.NewToolChoice(interactions.ToolChoiceTypeNone)
	case "required":
		return interactions.NewToolChoice(interactions.ToolChoiceTypeAny)
	}
	mode := interactions.ToolChoiceTypeAny
	return interactions.NewToolChoice(interactions.ToolChoiceConfig{
		AllowedTools: &interactions.AllowedTools{Mode: &mode, Tools: []string{choice}},
	})
}

func interactionTools(req *llm.Request) ([]interactions.Tool, error) {
	var tools []interactions.Tool
	for _, t := range req.Tools {
		f := map[string]any{"type": "function", "name": t.Name}
		if t.Description != "" {
			f["description"] = t.Description
		}
		if t.Parameters != nil {
			f["parameters"] = t.Parameters
		}
		raw, err := json.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("write parameters of %s: %w", t.Name, err)
		}
		tools = append(tools, interactions.NewToolUnknown(raw))
	}
	return tools, nil
}
