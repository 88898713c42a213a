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
	"github.com/weir-run/weir/llm/vendorapi"
)

// answerBuilder collects a response while its chunks are passed on.
type answerBuilder struct {
	vendorapi.StreamedText

	key           string
	calls         []*convo.Call
	announced     map[*convo.Call]bool
	usage         llm.Usage
	stop          string
	model         string
	id            string
	session       string
	native        json.RawMessage
	missingCallID bool // the server sent no id for a call
}

func newAnswerBuilder(req *llm.Request, emit func(llm.Chunk)) *answerBuilder {
	return &answerBuilder{StreamedText: vendorapi.StreamedText{Emit: emit}, key: req.Key, model: req.Model, announced: map[*convo.Call]bool{}}
}

// announce emits a call once its name is known, and derives an id if the server sent none.
func (a *answerBuilder) announce(c *convo.Call, index int) {
	if c.Name == "" || a.announced[c] {
		return
	}
	if c.ID == "" {
		c.ID, a.missingCallID = a.callID(index), true
	}
	a.announced[c] = true
	a.Emit(llm.Chunk{Call: &convo.Call{ID: c.ID, Name: c.Name}})
}

// callID derives an id for a call from the effect key. A repeated effect gets the same ids.
func (a *answerBuilder) callID(index int) string {
	sum := sha256.Sum256([]byte(cmp.Or(a.key, a.id)))
	return fmt.Sprintf("call_%s_%d", hex.EncodeToString(sum[:8]), index)
}

// emitUsage emits the usage that the server has reported.
func (a *answerBuilder) emitUsage() {
	if a.usage != (llm.Usage{}) {
		usage := a.usage
		a.Emit(llm.Chunk{Usage: &usage})
	}
}

// complete completes calls that were written as text and returns the response. Calls whose arguments the token limit
// or a filter cut off are omitted.
func (a *answerBuilder) complete() (*llm.Response, error) {
	var calls []convo.Call
	for _, c := range a.calls {
		if strings.TrimSpace(c.Arguments) == "" {
			c.Arguments = "{}" // the meaning for servers that send nothing
		}
		if (a.stop == llm.StopLength || a.stop == llm.StopFilter) && !json.Valid([]byte(c.Arguments)) {
			a.native = nil
			continue
		}
		if c.Name == "" {
			return nil, vendorapi.UnreadableAnswer(name, fmt.Errorf("a tool call has no name"))
		}
		calls = append(calls, *c)
	}
	if a.stop == llm.StopEnd && len(calls) > 0 {
		a.stop = llm.StopCalls
	}
	if a.stop == llm.StopCalls && len(calls) == 0 {
		a.stop = llm.StopEnd
	}
	m := convo.Message{
		Role: convo.Assistant, Text: a.Text(), Reasoning: a.Reasoning(),
		Calls: calls, Native: a.native,
	}
	if a.missingCallID {
		a.session = "" // no result could refer to the call
	}
	if m.Native != nil {
		m.Provider = name
	}
	a.emitUsage()
	return &llm.Response{Message: m, Usage: a.usage, Stop: a.stop, Model: a.model, ID: a.id, Session: a.session}, nil
}
