package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// host answers a turn's calls from a recording, without a provider, and keeps
// the requests as they would be sent.
type host struct {
	script   []convo.Message // what is left of the recording
	next     int             // answers given
	textOnly bool            // nothing but the recording
	sent     []*llm.Request
	added    []convo.Message // what the turn added: answers and results

	results map[string]string // by name and arguments of the call; not written later
}

func newHost(script []convo.Message) *host {
	h := &host{script: script, results: map[string]string{}}
	var open []convo.Call
	for _, m := range script {
		if len(m.Calls) > 0 {
			open = m.Calls
		}
		if m.Role == convo.Tool {
			h.results[open[0].Name+open[0].Arguments] = m.Text
			open = open[1:]
		}
	}
	return h
}

// Run returns the id of the run.
func (h *host) Run() string { return "run" }

func (h *host) MustCount() bool { return false }

// Emit takes nothing.
func (h *host) Emit(llm.Chunk) {}

// errScriptEnded: a summariser that failed.
var errScriptEnded = &llm.Error{Code: "model_overloaded", Message: "try again later"}

var clearedPattern = regexp.MustCompile(`call weir_result with \{"result": (\d+)\}`)

// ModelCall answers with the next message of the recording. Where a result is not
// shown in full, every third answer asks for it as well. Every fifth summary
// fails.
func (h *host) ModelCall(req *llm.Request, _ func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	h.sent = append(h.sent, req)
	if req.Purpose == llm.PurposeSummary {
		if len(h.sent)%5 == 4 && !h.textOnly {
			return nil, errScriptEnded
		}
		text := req.Messages[0].Text
		return &llm.Response{Message: convo.Message{Text: strings.Repeat("In short: "+text[:min(len(text), 300)]+" ", 9)}}, nil
	}
	m := convo.Message{Text: "Done."}
	for i, s := range h.script {
		if s.Role == convo.Assistant {
			m, h.script = s, h.script[i+1:]
			break
		}
	}
	h.next++
	if found := clearedPattern.FindStringSubmatch(texts(req.Messages)); found != nil && len(m.Calls) > 0 && h.next%3 == 0 && !h.textOnly {
		m.Calls = append(slices.Clip(m.Calls), convo.Call{
			ID: fmt.Sprint("again", h.next), Name: llm.ReaderTool, Arguments: `{"result": ` + found[1] + `}`,
		})
	}
	h.add(m)
	return &llm.Response{Message: m}, nil
}

// add notes an answer with the results that its calls will get; that of the
// reader is not known here.
func (h *host) add(m convo.Message) {
	m.Role = convo.Assistant
	h.added = append(h.added, m)
	for _, c := range m.Calls {
		h.added = append(h.added, convo.Message{Role: convo.Tool, CallID: c.ID, Name: c.Name, Text: h.results[c.Name+c.Arguments]})
	}
}

func texts(ms []convo.Message) string {
	var b strings.Builder
	for _, m := range ms {
		if m.Role == convo.Tool {
			b.WriteString(m.Text)
		}
	}
	return b.String()
}

// ToolCall gives the recorded result.
func (h *host) ToolCall(_ int, _ *tool.Tool, call convo.Call) (llm.ToolResult, error) {
	text, ok := h.results[call.Name+call.Arguments]
	if !ok {
		return llm.ToolResult{}, errors.New("no such call was recorded: " + call.Name + call.Arguments)
	}
	return llm.ToolResult{Text: text}, nil
}

// encoded is v as JSON, to compare.
func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
