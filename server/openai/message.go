package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/server"
)

// chatMessage is a message of a chat completion.
type chatMessage struct {
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content"`
	Name         string          `json:"name"`
	ToolCalls    []toolCall      `json:"tool_calls"`
	ToolCallID   string          `json:"tool_call_id"`
	Refusal      json.RawMessage `json:"refusal"`
	Annotations  json.RawMessage `json:"annotations"`
	Audio        json.RawMessage `json:"audio"`
	FunctionCall json.RawMessage `json:"function_call"`
	// Reasoning is what some clients send back of what they were shown.
	Reasoning json.RawMessage `json:"reasoning_content"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Index    *int   `json:"index,omitempty"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// part is a piece of content of chat completions or of responses.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Refusal  string          `json:"refusal"`
	ImageURL json.RawMessage `json:"image_url"` // of a response, a text
	File     *filePart       `json:"file"`
	filePart                 // of a response
}

type filePart struct {
	FileData string `json:"file_data"`
	FileURL  string `json:"file_url"`
	Filename string `json:"filename"`
	FileID   string `json:"file_id"`
}

// message converts a message of a client. It is content: nothing in it is a recorded effect.
func (m *chatMessage) message(place string) (convo.Message, error) {
	out := convo.Message{Name: m.Name, CallID: m.ToolCallID}
	switch m.Role {
	case "user", "assistant", "tool":
		out.Role = convo.Role(m.Role)
	case "system", "developer":
		out.Role = convo.System
	default:
		return out, server.InvalidRequest(place+".role", "the role is "+m.Role+", expected system, developer, user, assistant or tool")
	}
	if out.Role != convo.Tool {
		out.Name, out.CallID = "", ""
	}
	for _, x := range m.ToolCalls {
		out.Calls = append(out.Calls, convo.Call{ID: x.ID, Name: x.Function.Name, Arguments: x.Function.Arguments})
	}
	var err error
	out.Text, out.Parts, err = content(place+".content", m.Content)
	return out, err
}

// content reads a text, or a list of parts.
func content(place string, raw json.RawMessage) (text string, parts []convo.Part, err error) {
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var list []part
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", nil, server.InvalidRequest(place, "expected a text or a list of parts")
	}
	var texts []string
	for i := range list {
		p := &list[i]
		switch p.Type {
		case "text", "input_text", "output_text":
			texts = append(texts, p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		default:
			x, err := p.data(place)
			if err != nil {
				return "", nil, err
			}
			parts = append(parts, x)
		}
	}
	return strings.Join(texts, "\n"), parts, nil
}

// data converts an image or a file.
func (p *part) data(place string) (convo.Part, error) {
	file := p.filePart
	if p.File != nil {
		file = *p.File
	}
	switch {
	case file.FileID != "" && file.FileData+file.FileURL+string(p.ImageURL) != "":
		return convo.Part{}, server.InvalidRequest(place, "file_id and the content of a file exclude each other")
	case file.FileID != "" && p.Type == "input_image":
		return convo.Part{Kind: "image", URL: fileScheme + file.FileID}, nil
	case file.FileID != "" && (p.Type == "file" || p.Type == "input_file"):
		return convo.Part{URL: fileScheme + file.FileID}, nil
	case file.FileID != "":
		return convo.Part{}, server.InvalidRequest(place, "parts of type "+p.Type+" have no file_id")
	case p.Type == "image_url" || p.Type == "input_image":
		var url string
		if json.Unmarshal(p.ImageURL, &url) != nil {
			var o struct{ URL string }
			if err := json.Unmarshal(p.ImageURL, &o); err != nil {
				return convo.Part{}, server.InvalidRequest(place, "an image needs image_url")
			}
			url = o.URL
		}
		return dataPart(place, "image", url, "")
	case p.Type == "file" || p.Type == "input_file":
		return dataPart(place, "file", file.FileData+file.FileURL, file.Filename)
	}
	return convo.Part{}, server.InvalidRequest(place, "parts of type "+p.Type+" are not supported; send text, images and files")
}

// dataPart converts a URL. The data of a data URL is decoded.
func dataPart(place, kind, url, name string) (convo.Part, error) {
	out := convo.Part{Kind: kind, Name: name, URL: url}
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			return out, server.InvalidRequest(place, "expected an https: or a data: URL")
		}
		return out, nil
	}
	kindOf, data, ok := strings.Cut(rest, ";base64,")
	if !ok {
		return out, server.InvalidRequest(place, "a data URL needs ;base64")
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return out, server.InvalidRequest(place, "the data is not base64: "+err.Error())
	}
	out.URL, out.MIME, out.Data = "", kindOf, b
	return out, nil
}
