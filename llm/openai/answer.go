package openai

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// The reasons a model stops for.
const (
	stopEnd    = "end"
	stopCalls  = "calls"
	stopLength = "length"
	stopFilter = "filter"
)

// answerBuilder gathers a response while its pieces are passed on.
type answerBuilder struct {
	emit          func(llm.Chunk)
	key           string
	text          strings.Builder
	reasoning     strings.Builder
	calls         []*convo.Call
	announced     map[*convo.Call]bool
	usage         llm.Usage
	stop          string
	model         string
	id            string
	session       string
	native        json.RawMessage
	missingCallID bool // the server gave a call no id
}

func newAnswerBuilder(req *llm.Request, emit func(llm.Chunk)) *answerBuilder {
	return &answerBuilder{emit: emit, key: req.Key, model: req.Model, announced: map[*convo.Call]bool{}}
}

func (a *answerBuilder) addText(text string) {
	if text == "" {
		return
	}
	a.text.WriteString(text)
	a.emit(llm.Chunk{Text: text})
}

func (a *answerBuilder) addReasoning(text string) {
	if text == "" {
		return
	}
	a.reasoning.WriteString(text)
	a.emit(llm.Chunk{Reasoning: text})
}

// announce tells of a call once its name is known, giving it an id where the
// server gave none.
func (a *answerBuilder) announce(c *convo.Call, index int) {
	if c.Name == "" || a.announced[c] {
		return
	}
	if c.ID == "" {
		c.ID, a.missingCallID = a.callID(index), true
	}
	a.announced[c] = true
	a.emit(llm.Chunk{Call: &convo.Call{ID: c.ID, Name: c.Name}})
}

// callID makes an id that the same effect makes again and no other does.
func (a *answerBuilder) callID(index int) string {
	sum := sha256.Sum256([]byte(cmp.Or(a.key, a.id)))
	return fmt.Sprintf("call_%s_%d", hex.EncodeToString(sum[:8]), index)
}

// emitUsage passes on the usage that the server has reported.
func (a *answerBuilder) emitUsage() {
	if a.usage != (llm.Usage{}) {
		usage := a.usage
		a.emit(llm.Chunk{Usage: &usage})
	}
}

// complete settles the text's calls and returns the response. Calls whose
// arguments the token limit or a filter cut are left out.
func (a *answerBuilder) complete() (*llm.Response, error) {
	var calls []convo.Call
	for _, c := range a.calls {
		if strings.TrimSpace(c.Arguments) == "" {
			c.Arguments = "{}" // what servers mean that send nothing
		}
		if (a.stop == stopLength || a.stop == stopFilter) && !json.Valid([]byte(c.Arguments)) {
			a.native = nil
			continue
		}
		if c.Name == "" {
			return nil, wire.UnreadableAnswer(name, fmt.Errorf("a tool call has no name"))
		}
		calls = append(calls, *c)
	}
	if a.stop == stopEnd && len(calls) > 0 {
		a.stop = stopCalls
	}
	if a.stop == stopCalls && len(calls) == 0 {
		a.stop = stopEnd
	}
	m := convo.Message{
		Role: convo.Assistant, Text: a.text.String(), Reasoning: a.reasoning.String(),
		Calls: calls, Native: a.native,
	}
	if a.missingCallID {
		a.session = "" // no result could name its call there
	}
	if m.Native != nil {
		m.Provider = name
	}
	a.emitUsage()
	return &llm.Response{Message: m, Usage: a.usage, Stop: a.stop, Model: a.model, ID: a.id, Session: a.session}, nil
}
