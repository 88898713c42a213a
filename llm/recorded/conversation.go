package recorded

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weir-run/weir/convo"
)

// Conversation is one recorded conversation, including its system message.
type Conversation struct {
	ID       string
	Messages []convo.Message
}

// chatConversation is a line in the format of OpenAI's Chat Completions,
// https://platform.openai.com/docs/api-reference/chat.
type chatConversation struct {
	ID       string        `json:"id"`
	Messages []chatMessage `json:"messages"`
}

type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"` // text, null or a list of parts
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name"`
}

// readConversations reads one conversation a line.
func readConversations(r io.Reader) ([]Conversation, error) {
	var out []Conversation
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return nil, fmt.Errorf("read conversations: line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			c, err := parseConversation(line)
			if err != nil {
				return nil, fmt.Errorf("read conversations: line %d: %w", n, err)
			}
			if c.ID == "" {
				c.ID = fmt.Sprintf("line %d", n)
			}
			out = append(out, c)
		}
		if end {
			return out, nil
		}
	}
}

func parseConversation(line []byte) (Conversation, error) {
	var w chatConversation
	if err := json.Unmarshal(line, &w); err != nil {
		return Conversation{}, err
	}
	c := Conversation{ID: w.ID, Messages: make([]convo.Message, 0, len(w.Messages))}
	for i, m := range w.Messages {
		msg, err := m.message()
		if err != nil {
			return Conversation{}, fmt.Errorf("message %d: %w", i+1, err)
		}
		c.Messages = append(c.Messages, msg)
	}
	return c, nil
}

func (w chatMessage) message() (convo.Message, error) {
	m := convo.Message{Role: convo.Role(w.Role)}
	switch m.Role {
	case convo.System, convo.User, convo.Assistant:
	case convo.Tool:
		m.CallID, m.Name = w.ToolCallID, w.Name
	case "developer":
		m.Role = convo.System
	default:
		return m, fmt.Errorf("%w %q", convo.ErrUnknownRole, w.Role)
	}
	for _, c := range w.ToolCalls {
		m.Calls = append(m.Calls, convo.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	var err error
	m.Text, err = text(w.Content)
	return m, err
}

// text returns the text of a content: the text itself, "" for null, the joined parts of a list.
func text(content json.RawMessage) (string, error) {
	if len(content) == 0 {
		return "", nil
	}
	var s *string
	if json.Unmarshal(content, &s) == nil {
		if s == nil {
			return "", nil
		}
		return *s, nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(content, &parts); err != nil {
		return "", errors.New("content is neither text nor null nor a list of parts")
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return "", fmt.Errorf("a part of type %q cannot be replayed, only text", p.Type)
		}
		b.WriteString(p.Text)
	}
	return b.String(), nil
}
