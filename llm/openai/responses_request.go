package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// goesOn says that the vendor has the front of the history. A session that
// holds nothing or leaves nothing to say is not used, and all is sent.
func goesOn(req *llm.Request) bool {
	return req.Session != "" && req.Held > 0 && req.Held < len(req.Messages)
}

// responsesParams is req as the Responses API takes it. Unless it is to be kept
// nothing is stored at the vendor: the history is the client's, reasoning
// travels encrypted. It does so in what is kept as well, for when the vendor has
// lost it. Instructions and tools hold for one response and are sent each time.
func (p *Provider) responsesParams(req *llm.Request) (responses.ResponseNewParams, error) {
	params := responses.ResponseNewParams{Model: req.Model, Store: param.NewOpt(req.Keep)}
	if reasons(req) {
		params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if req.System != "" {
		params.Instructions = param.NewOpt(req.System)
	}
	if req.Temperature != nil {
		params.Temperature = param.NewOpt(*req.Temperature)
	}
	if req.MaxOutput > 0 {
		params.MaxOutputTokens = param.NewOpt(int64(req.MaxOutput))
	}
	if req.Reasoning != "" {
		params.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffort(req.Reasoning)}
		if p.summary != "none" && req.Reasoning != "none" {
			params.Reasoning.Summary = shared.ReasoningSummary(cmp.Or(p.summary, "auto"))
		}
	}
	if req.Schema != nil {
		params.Text.Format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{
			Name: schemaName(req.Schema), Schema: req.Schema, Strict: param.NewOpt(strict(req.Schema)),
		}
	}
	for _, t := range req.Tools {
		tool := &responses.FunctionToolParam{
			Name: t.Name, Parameters: parameters(t), Strict: param.NewOpt(false),
		}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: tool})
	}
	params.ToolChoice = responsesChoice(req)
	var input responses.ResponseInputParam
	sent := map[string]bool{}
	messages := req.Messages
	if goesOn(req) {
		params.PreviousResponseID = param.NewOpt(req.Session)
		messages = messages[req.Held:]
	}
	for i := range messages {
		items, err := p.responsesItems(&messages[i], req.Model, sent)
		if err != nil {
			return params, err
		}
		input = append(input, items...)
	}
	params.Input.OfInputItemList = input
	return params, nil
}

// reasons guesses whether the model reasons: asking for encrypted reasoning is
// an error at one that does not.
func reasons(req *llm.Request) bool {
	if req.Reasoning != "" {
		return true
	}
	model := strings.TrimPrefix(req.Model, "ft:")
	for _, family := range []string{"gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"} {
		if strings.HasPrefix(model, family) {
			return false
		}
	}
	return true
}

func responsesChoice(req *llm.Request) responses.ResponseNewParamsToolChoiceUnion {
	switch {
	case req.ToolChoice == "" || len(req.Tools) == 0:
		return responses.ResponseNewParamsToolChoiceUnion{}
	case req.ToolChoice == "auto" || req.ToolChoice == "none" || req.ToolChoice == "required":
		return responses.ResponseNewParamsToolChoiceUnion{
			OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptions(req.ToolChoice)),
		}
	}
	return responses.ResponseNewParamsToolChoiceUnion{
		OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: req.ToolChoice},
	}
}

// responsesItems is one message as input items: an assistant's may be many. Sent
// are the ids of the items that went before.
func (p *Provider) responsesItems(m *convo.Message, model string, sent map[string]bool) ([]responses.ResponseInputItemUnionParam, error) {
	switch m.Role {
	case convo.Assistant:
		return p.assistantItems(m, model, sent)
	case convo.Tool:
		output, err := p.toolOutput(m)
		if err != nil {
			return nil, err
		}
		return []responses.ResponseInputItemUnionParam{{OfFunctionCallOutput: output}}, nil
	case convo.System, convo.User:
		content, err := p.responsesContent(m)
		if err != nil {
			return nil, err
		}
		return []responses.ResponseInputItemUnionParam{{OfMessage: &responses.EasyInputMessageParam{
			Role: responses.EasyInputMessageRole(m.Role), Content: content,
		}}}, nil
	}
	return nil, p.speaker.Refused("a message has the role %q", m.Role)
}

func (p *Provider) assistantItems(m *convo.Message, model string, sent map[string]bool) ([]responses.ResponseInputItemUnionParam, error) {
	if len(m.Parts) > 0 {
		return nil, p.speaker.Refused("an assistant's message cannot hold an image or a file")
	}
	var items []responses.ResponseInputItemUnionParam
	if kept := p.items(m, model, sent); kept != nil {
		for _, raw := range kept {
			items = append(items, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(raw)))
		}
		return items, nil
	}
	if m.Text != "" || len(m.Calls) == 0 {
		items = append(items, responses.ResponseInputItemUnionParam{OfMessage: &responses.EasyInputMessageParam{
			Role:    responses.EasyInputMessageRoleAssistant,
			Content: responses.EasyInputMessageContentUnionParam{OfString: param.NewOpt(m.Text)},
		}})
	}
	for _, c := range m.Calls {
		items = append(items, responses.ResponseInputItemUnionParam{OfFunctionCall: &responses.ResponseFunctionToolCallParam{
			CallID: c.ID, Name: c.Name, Arguments: c.Arguments,
		}})
	}
	return items, nil
}

func (p *Provider) responsesContent(m *convo.Message) (responses.EasyInputMessageContentUnionParam, error) {
	if len(m.Parts) == 0 {
		return responses.EasyInputMessageContentUnionParam{OfString: param.NewOpt(m.Text)}, nil
	}
	var list responses.ResponseInputMessageContentListParam
	if m.Text != "" {
		list = append(list, responses.ResponseInputContentUnionParam{
			OfInputText: &responses.ResponseInputTextParam{Text: m.Text},
		})
	}
	for _, part := range m.Parts {
		c, err := p.responsesPart(part)
		if err != nil {
			return responses.EasyInputMessageContentUnionParam{}, err
		}
		list = append(list, c)
	}
	return responses.EasyInputMessageContentUnionParam{OfInputItemContentList: list}, nil
}

func (p *Provider) responsesPart(part convo.Part) (responses.ResponseInputContentUnionParam, error) {
	if part.URL == "" && len(part.Data) == 0 {
		return responses.ResponseInputContentUnionParam{}, p.speaker.Refused("a part %q has neither data nor an address", part.Name)
	}
	switch part.Kind {
	case "image":
		return responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{
			Detail: responses.ResponseInputImageDetailAuto, ImageURL: param.NewOpt(address(part)),
		}}, nil
	case "file":
		file := &responses.ResponseInputFileParam{}
		if len(part.Data) > 0 {
			file.FileData = param.NewOpt(dataURL(part))
			file.Filename = param.NewOpt(cmp.Or(part.Name, "file"))
		} else {
			file.FileURL = param.NewOpt(part.URL)
		}
		return responses.ResponseInputContentUnionParam{OfInputFile: file}, nil
	}
	return responses.ResponseInputContentUnionParam{}, p.speaker.Refused("a part is of the kind %q", part.Kind)
}

func (p *Provider) toolOutput(m *convo.Message) (*responses.ResponseInputItemFunctionCallOutputParam, error) {
	out := &responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(m.CallID)}
	if len(m.Parts) == 0 {
		out.Output.OfString = param.NewOpt(m.Text)
		return out, nil
	}
	var list responses.ResponseFunctionCallOutputItemListParam
	if m.Text != "" {
		list = append(list, responses.ResponseFunctionCallOutputItemUnionParam{
			OfInputText: &responses.ResponseInputTextContentParam{Text: m.Text},
		})
	}
	for _, part := range m.Parts {
		c, err := p.responsesPart(part)
		if err != nil {
			return nil, err
		}
		var o responses.ResponseFunctionCallOutputItemUnionParam
		if c.OfInputImage != nil {
			o.OfInputImage = &responses.ResponseInputImageContentParam{
				Detail: responses.ResponseInputImageContentDetailAuto, ImageURL: c.OfInputImage.ImageURL,
			}
		} else {
			o.OfInputFile = &responses.ResponseInputFileContentParam{
				FileData: c.OfInputFile.FileData, Filename: c.OfInputFile.Filename, FileURL: c.OfInputFile.FileURL,
			}
		}
		list = append(list, o)
	}
	out.Output.OfResponseFunctionCallOutputItemArray = list
	return out, nil
}

// address is where a part's content is: its own data before its address.
func address(part convo.Part) string {
	if len(part.Data) > 0 {
		return dataURL(part)
	}
	return part.URL
}

func dataURL(part convo.Part) string {
	mime := part.MIME
	if mime == "" {
		mime = "application/octet-stream"
		if part.Kind == "image" {
			mime = "image/png"
		}
	}
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(part.Data)
}
