package openai

import (
	"cmp"
	"slices"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// chatParams is req as Chat Completions takes it. The token limit is
// max_completion_tokens at OpenAI, which refuses the older name for reasoning
// models, and max_tokens elsewhere, since many servers know only that.
func (p *Provider) chatParams(req *llm.Request) (sdk.ChatCompletionNewParams, error) {
	params := sdk.ChatCompletionNewParams{
		Model:           req.Model,
		ReasoningEffort: shared.ReasoningEffort(req.Reasoning),
		StreamOptions:   sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if req.Temperature != nil {
		params.Temperature = param.NewOpt(*req.Temperature)
	}
	switch {
	case req.MaxOutput <= 0:
	case p.vendor:
		params.MaxCompletionTokens = param.NewOpt(int64(req.MaxOutput))
	default:
		params.MaxTokens = param.NewOpt(int64(req.MaxOutput))
	}
	if req.Schema != nil {
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: schemaName(req.Schema), Schema: req.Schema, Strict: param.NewOpt(strict(req.Schema)),
			},
		}
	}
	for _, t := range req.Tools {
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: parameters(t)}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		params.Tools = append(params.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	params.ToolChoice = chatChoice(req)
	if req.System != "" {
		params.Messages = append(params.Messages, sdk.SystemMessage(req.System))
	}
	open := afterUser(req.Messages)
	for i := range req.Messages {
		m, err := p.chatMessage(&req.Messages[i], req.Model, i > open)
		if err != nil {
			return params, err
		}
		params.Messages = append(params.Messages, m)
	}
	return params, nil
}

// afterUser is the index of the last user message, -1 if there is none.
func afterUser(messages []convo.Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == convo.User {
			return i
		}
	}
	return -1
}

func chatChoice(req *llm.Request) sdk.ChatCompletionToolChoiceOptionUnionParam {
	switch {
	case req.ToolChoice == "" || len(req.Tools) == 0:
		return sdk.ChatCompletionToolChoiceOptionUnionParam{}
	case req.ToolChoice == "auto" || req.ToolChoice == "none" || req.ToolChoice == "required":
		return sdk.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt(req.ToolChoice)}
	}
	return sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: req.ToolChoice})
}

// chatMessage is one message; open says that it is of the turn under way, in
// which a server that reasons may want its reasoning back.
func (p *Provider) chatMessage(m *convo.Message, model string, open bool) (sdk.ChatCompletionMessageParamUnion, error) {
	if len(m.Parts) > 0 && m.Role != convo.User {
		return sdk.ChatCompletionMessageParamUnion{}, p.speaker.Refused(
			"chat completions takes images and files in user messages only, not in one of the role %q", m.Role)
	}
	switch m.Role {
	case convo.System:
		return sdk.SystemMessage(m.Text), nil
	case convo.User:
		return p.chatUser(m)
	case convo.Tool:
		return sdk.ToolMessage(m.Text, m.CallID), nil
	case convo.Assistant:
		return p.chatAssistant(m, model, open), nil
	}
	return sdk.ChatCompletionMessageParamUnion{}, p.speaker.Refused("a message has the role %q", m.Role)
}

func (p *Provider) chatAssistant(m *convo.Message, model string, open bool) sdk.ChatCompletionMessageParamUnion {
	out := &sdk.ChatCompletionAssistantMessageParam{}
	if m.Text != "" || len(m.Calls) == 0 {
		out.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: c.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: c.Name, Arguments: c.Arguments,
				},
			},
		})
	}
	if n, ok := p.unpack(m, model); ok && open && len(m.Calls) > 0 && n.Reasoning == m.Reasoning {
		out.SetExtraFields(map[string]any{"reasoning_content": n.Reasoning})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: out}
}

func (p *Provider) chatUser(m *convo.Message) (sdk.ChatCompletionMessageParamUnion, error) {
	if len(m.Parts) == 0 {
		return sdk.UserMessage(m.Text), nil
	}
	var parts []sdk.ChatCompletionContentPartUnionParam
	if m.Text != "" {
		parts = append(parts, sdk.TextContentPart(m.Text))
	}
	for _, part := range m.Parts {
		c, err := p.chatPart(part)
		if err != nil {
			return sdk.ChatCompletionMessageParamUnion{}, err
		}
		parts = append(parts, c)
	}
	return sdk.UserMessage(parts), nil
}

func (p *Provider) chatPart(part convo.Part) (sdk.ChatCompletionContentPartUnionParam, error) {
	switch {
	case part.Kind != "image" && part.Kind != "file":
		return sdk.ChatCompletionContentPartUnionParam{}, p.speaker.Refused("a part is of the kind %q", part.Kind)
	case part.URL == "" && len(part.Data) == 0:
		return sdk.ChatCompletionContentPartUnionParam{}, p.speaker.Refused("a part %q has neither data nor an address", part.Name)
	case part.Kind == "image":
		return sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: address(part)}), nil
	case len(part.Data) == 0:
		return sdk.ChatCompletionContentPartUnionParam{}, p.speaker.Refused("chat completions takes a file as data only, not by its address")
	}
	return sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
		FileData: param.NewOpt(dataURL(part)), Filename: param.NewOpt(cmp.Or(part.Name, "file")),
	}), nil
}
