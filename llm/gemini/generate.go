package gemini

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/genai"

	"github.com/weir-run/weir/llm"
)

// generate sends req to GenerateContent. The SDK makes the configuration;
// contents, tools and schemas are put in beside it, since the SDK would turn
// their numbers into floats and drop an empty text that carries a signature.
func (p *Provider) generate(ctx context.Context, req *llm.Request) error {
	contents, instructions, err := p.contents(req)
	if err != nil {
		return err
	}
	schema, err := json.Marshal(req.Schema)
	if err != nil {
		return fmt.Errorf("write schema: %w", err)
	}
	config, err := p.config(req, instructions, string(schema))
	if err != nil {
		return err
	}
	tools, err := declarations(req)
	if err != nil {
		return err
	}
	config.HTTPOptions = &genai.HTTPOptions{ExtrasRequestProvider: func(body map[string]any) map[string]any {
		body["contents"] = contents
		if tools != nil {
			body["tools"] = tools
		}
		if c, ok := body["generationConfig"].(map[string]any); ok {
			if config.ResponseMIMEType != "" {
				c["responseJsonSchema"] = json.RawMessage(schema)
			}
			if len(c) == 0 {
				delete(body, "generationConfig")
			}
		}
		return body
	}}
	for _, err := range p.client.Models.GenerateContentStream(ctx, req.Model, nil, config) {
		return err // the courier keeps the answer: there is an error or nothing
	}
	return nil
}

// config is all but contents, tools and schemas.
func (p *Provider) config(req *llm.Request, instructions []string, schema string) (*genai.GenerateContentConfig, error) {
	once := false
	config := &genai.GenerateContentConfig{
		AutomaticContinuation: &once, // a call is one request
		MaxOutputTokens:       int32(max(req.MaxOutput, 0)),
		ToolConfig:            toolConfig(req),
	}
	if req.Temperature != nil {
		t := float32(*req.Temperature)
		config.Temperature = &t
	}
	thinking, err := p.thinking(req)
	if err != nil {
		return nil, err
	}
	config.ThinkingConfig = thinking
	switch {
	case req.Schema == nil:
	case len(req.Tools) > 0 && older(req.Model):
		instructions = append(instructions,
			"Once no tool is to be called, answer with nothing but JSON that follows this JSON Schema: "+schema)
	default:
		config.ResponseMIMEType = "application/json"
	}
	if len(instructions) > 0 {
		config.SystemInstruction = &genai.Content{}
		for _, text := range instructions {
			config.SystemInstruction.Parts = append(config.SystemInstruction.Parts, &genai.Part{Text: text})
		}
	}
	return config, nil
}

// declared are the tools, their schemas as they are.
type declared struct {
	Functions []function `json:"functionDeclarations"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

func declarations(req *llm.Request) ([]declared, error) {
	if len(req.Tools) == 0 {
		return nil, nil
	}
	var d declared
	for _, t := range req.Tools {
		f := function{Name: t.Name, Description: t.Description}
		if t.Parameters != nil {
			var err error
			if f.Parameters, err = json.Marshal(t.Parameters); err != nil {
				return nil, fmt.Errorf("write parameters of %s: %w", t.Name, err)
			}
		}
		d.Functions = append(d.Functions, f)
	}
	return []declared{d}, nil
}

func toolConfig(req *llm.Request) *genai.ToolConfig {
	if req.ToolChoice == "" || len(req.Tools) == 0 {
		return nil
	}
	c := &genai.FunctionCallingConfig{}
	switch req.ToolChoice {
	case "auto":
		c.Mode = genai.FunctionCallingConfigModeAuto
	case "none":
		c.Mode = genai.FunctionCallingConfigModeNone
	case "required":
		c.Mode = genai.FunctionCallingConfigModeAny
	default:
		c.Mode, c.AllowedFunctionNames = genai.FunctionCallingConfigModeAny, []string{req.ToolChoice}
	}
	return &genai.ToolConfig{FunctionCallingConfig: c}
}
