package agui

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/session"
)

// message is a message of the client.
type message struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"toolCallId"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"toolCalls"`
}

// part is a part of the content of a message.
type part struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source struct {
		Type     string `json:"type"`
		Value    string `json:"value"`
		MimeType string `json:"mimeType"`
	} `json:"source"`
}

// messages returns what the client has of the conversation.
func (x *round) messages() (out []convo.Message, err error) {
	for i := range x.in.Messages {
		m := &x.in.Messages[i]
		if m.Role != "user" && m.Role != "assistant" {
			continue
		}
		text, parts, err := contentOf("body.messages."+strconv.Itoa(i), m.Content)
		if err != nil {
			return nil, err
		}
		if text != "" || parts != nil || i == len(x.in.Messages)-1 {
			out = append(out, convo.Message{Role: convo.Role(m.Role), Text: text, Parts: parts})
		}
	}
	return out, nil
}

// contentOf reads a text, or a list of parts.
func contentOf(place string, raw json.RawMessage) (text string, parts []convo.Part, err error) {
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var list []part
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", nil, nil //nolint:nilerr // activities have other contents
	}
	var texts []string
	for i := range list {
		p := &list[i]
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case "image", "document":
			x, err := p.file(place)
			if err != nil {
				return "", nil, err
			}
			parts = append(parts, x)
		default:
			return "", nil, server.InvalidRequest(place, "parts of type "+p.Type+" are not supported; send text, images and documents")
		}
	}
	return strings.Join(texts, "\n"), parts, nil
}

// file converts an image or a document.
func (p *part) file(place string) (out convo.Part, err error) {
	if out.Kind = "file"; p.Type == "image" {
		out.Kind = "image"
	}
	out.MIME = p.Source.MimeType
	switch p.Source.Type {
	case "data":
		if out.MIME == "" {
			return out, server.InvalidRequest(place, "a source of type data needs mimeType")
		}
		if out.Data, err = base64.StdEncoding.DecodeString(p.Source.Value); err != nil {
			return out, server.InvalidRequest(place, "the data is not base64: "+err.Error())
		}
		if len(out.Data) == 0 {
			return out, server.InvalidRequest(place, "the data is empty")
		}
	case "url":
		if out.URL = p.Source.Value; !strings.HasPrefix(out.URL, "https://") && !strings.HasPrefix(out.URL, "http://") {
			return out, server.InvalidRequest(place, "expected an https: URL")
		}
	default:
		return out, server.InvalidRequest(place, "sources of type "+p.Source.Type+" are not supported; send data or a URL")
	}
	return out, nil
}

// content returns a message as the session takes it.
func (x *round) content(m *convo.Message) (any, error) {
	if len(m.Parts) == 0 {
		return m.Text, nil
	}
	if in, _ := session.MessageInput(x.flow.Flow); in.Type == flow.TypeText {
		return nil, server.InvalidRequest("body.messages", "the flow "+x.flow.Name+" takes text alone: its input "+in.Name+" has the type text, and message would take images and documents")
	}
	return *m, nil
}

// system returns what the client adds to the system instructions.
func (x *round) system() string {
	var texts []string
	for _, e := range x.in.Context {
		texts = append(texts, e.Description+": "+e.Value)
	}
	for i := range x.in.Messages {
		if m := &x.in.Messages[i]; m.Role == "system" || m.Role == "developer" {
			text, _, err := contentOf("body.messages", m.Content)
			if err == nil && text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}
