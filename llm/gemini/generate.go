package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/weir-run/weir/llm"
)

// generateRequest is the body of a GenerateContent request.
type generateRequest struct {
	Contents    []content          `json:"contents"`
	Config      *generationConfig  `json:"generationConfig,omitempty"`
	Instruction *content           `json:"systemInstruction,omitempty"`
	ToolConfig  *toolConfig        `json:"toolConfig,omitempty"`
	Tools       []toolDeclarations `json:"tools,omitempty"`
}

type generationConfig struct {
	MaxOutputTokens int             `json:"maxOutputTokens,omitempty"`
	Schema          json.RawMessage `json:"responseJsonSchema,omitempty"`
	MIME            string          `json:"responseMimeType,omitempty"`
	Temperature     *float64        `json:"temperature,omitempty"`
	Thinking        *thinkingConfig `json:"thinkingConfig,omitempty"`
}

type thinkingConfig struct {
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
	Budget          *int32 `json:"thinkingBudget,omitempty"`
	Level           string `json:"thinkingLevel,omitempty"`
}

type toolConfig struct {
	Calling callingConfig `json:"functionCallingConfig"`
}

type callingConfig struct {
	Allowed []string `json:"allowedFunctionNames,omitempty"`
	Mode    string   `json:"mode"`
}

// toolDeclarations are the tools with unchanged schemas.
type toolDeclarations struct {
	Functions []function `json:"functionDeclarations"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// generateBody converts req to a GenerateContent request.
func (p *Provider) generateBody(req *llm.Request) (any, error) {
	contents, instructions, err := p.contents(req)
	if err != nil {
		return nil, err
	}
	body := &generateRequest{Contents: contents, ToolConfig: toolChoice(req)}
	if body.Tools, err = declarations(req); err != nil {
		return nil, err
	}
	config := generationConfig{MaxOutputTokens: max(req.MaxOutput, 0), Temperature: req.Temperature}
	if config.Thinking, err = p.thinking(req); err != nil {
		return nil, err
	}
	if req.Schema != nil {
		schema, err := json.Marshal(req.Schema)
		if err != nil {
			return nil, fmt.Errorf("write schema: %w", err)
		}
		if len(req.Tools) > 0 && isBeforeGemini3(req.Model) {
			instructions = append(instructions,
				"Once no tool is to be called, answer with nothing but JSON that follows this JSON Schema: "+string(schema))
		} else {
			config.MIME, config.Schema = "application/json", schema
		}
	}
	if config.MaxOutputTokens > 0 || config.MIME != "" || config.Temperature != nil || config.Thinking != nil {
		body.Config = &config
	}
	if len(instructions) > 0 {
		body.Instruction = &content{Role: roleUser}
		for _, text := range instructions {
			body.Instruction.Parts = append(body.Instruction.Parts, textPart(text))
		}
	}
	return body, nil
}

func declarations(req *llm.Request) ([]toolDeclarations, error) {
	if len(req.Tools) == 0 {
		return nil, nil
	}
	var d toolDeclarations
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
	return []toolDeclarations{d}, nil
}

func toolChoice(req *llm.Request) *toolConfig {
	if req.ToolChoice == "" || len(req.Tools) == 0 {
		return nil
	}
	c := &toolConfig{}
	switch req.ToolChoice {
	case "auto":
		c.Calling.Mode = "AUTO"
	case "none":
		c.Calling.Mode = "NONE"
	case "required":
		c.Calling.Mode = "ANY"
	default:
		c.Calling = callingConfig{Mode: "ANY", Allowed: []string{req.ToolChoice}}
	}
	return c
}
