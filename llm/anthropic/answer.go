package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// answerBuilder collects a response while its chunks are passed on. If the vendor pauses a turn, several streams form
// one answer.
type answerBuilder struct {
	vendorapi.StreamedText

	key            string
	blocks         []*blockBuilder
	usage          llm.Usage
	stop           string // a stop reason of llm; "" until the vendor reports one
	paused         bool
	requestedModel string // the reported model
	model          string // as reported by the vendor
	id             string
}

// blockBuilder is an incomplete content block.
type blockBuilder struct {
	fields    map[string]json.RawMessage // the block of the start event
	kind      string
	text      strings.Builder // text or thinking
	input     strings.Builder
	signature string
	citations []json.RawMessage
	call      *convo.Call // input of a tool_use
	closed    bool
}

// addThinking emits a piece of thinking; first is set for the first piece of a block.
func (a *answerBuilder) addThinking(text string, first bool) {
	if text == "" {
		return
	}
	if first && a.Reasoning() != "" {
		text = "\n\n" + text
	}
	a.AddReasoning(text)
}

// callID derives an id for a call from the effect key, for servers that send none. A repeated effect gets the same
// ids.
func (a *answerBuilder) callID(index int) string {
	of := a.key
	if of == "" {
		of = a.id
	}
	sum := sha256.Sum256([]byte(of))
	return fmt.Sprintf("toolu_%s_%d", hex.EncodeToString(sum[:8]), index)
}

// beginBlock starts a block. Some servers send the whole content here.
func (a *answerBuilder) beginBlock(raw json.RawMessage) (*blockBuilder, error) {
	b := &blockBuilder{}
	var p blockFields
	if err := json.Unmarshal(raw, &b.fields); err != nil {
		return nil, vendorapi.UnreadableAnswer(name, err)
	}
	if err := json.Unmarshal(raw, &p); err != nil || p.Type == "" {
		return nil, vendorapi.UnreadableAnswer(name, errors.New("a content block has no type"))
	}
	b.kind = p.Type
	a.blocks = append(a.blocks, b)
	switch b.kind {
	case "text":
		b.text.WriteString(p.Text)
		a.AddText(p.Text)
	case "thinking":
		a.addThinking(p.Thinking, true)
		b.text.WriteString(p.Thinking)
	case "tool_use":
		if p.Name == "" {
			return nil, vendorapi.UnreadableAnswer(name, errors.New("a tool call has no name"))
		}
		if p.ID == "" {
			p.ID = a.callID(len(a.blocks))
		}
		b.call = &convo.Call{ID: p.ID, Name: p.Name}
		a.Emit(llm.Chunk{Call: &convo.Call{ID: p.ID, Name: p.Name}})
	}
	return b, nil
}

// completeCalls ends the arguments of calls, and omits calls that the token limit or a refusal cut off.
func (a *answerBuilder) completeCalls() []convo.Call {
	var calls []convo.Call
	kept := a.blocks[:0]
	for _, b := range a.blocks {
		if b.call == nil {
			kept = append(kept, b)
			continue
		}
		b.call.Arguments = b.input.String()
		if whole := string(b.fields["input"]); b.call.Arguments == "" && vendorapi.IsSet(b.fields["input"]) {
			b.call.Arguments = whole
		}
		if strings.TrimSpace(b.call.Arguments) == "" {
			b.call.Arguments = "{}"
		}
		cut := a.stop == llm.StopLength || a.stop == llm.StopFilter
		if cut && (!b.closed || !json.Valid([]byte(b.call.Arguments))) {
			continue
		}
		kept = append(kept, b)
		calls = append(calls, *b.call)
	}
	a.blocks = kept
	return calls
}

// emitUsage emits the usage that the vendor has reported.
func (a *answerBuilder) emitUsage() {
	if a.usage != (llm.Usage{}) {
		usage := a.usage
		a.Emit(llm.Chunk{Usage: &usage})
	}
}

// complete returns the response after the vendor has sent the stop reason.
func (a *answerBuilder) complete(p *Provider) *llm.Response {
	calls := a.completeCalls()
	if a.stop == llm.StopEnd && len(calls) > 0 {
		a.stop = llm.StopCalls
	}
	if a.stop == llm.StopCalls && len(calls) == 0 {
		a.stop = llm.StopEnd
	}
	m := convo.Message{
		Role: convo.Assistant, Text: a.Text(), Reasoning: a.Reasoning(), Calls: calls,
		Native: p.pack(a.requestedModel, a.raw()),
	}
	if m.Native != nil {
		m.Provider = name
	}
	a.emitUsage()
	return &llm.Response{Message: m, Usage: a.usage, Stop: a.stop, Model: a.model, ID: a.id}
}

// raw returns all blocks in the form in which the vendor accepts them in a history.
func (a *answerBuilder) raw() []json.RawMessage {
	out := make([]json.RawMessage, 0, len(a.blocks))
	for _, b := range a.blocks {
		out = append(out, b.raw())
	}
	return out
}

// raw returns the block as it would be in an answer that is not streamed.
func (b *blockBuilder) raw() json.RawMessage {
	fields := make(map[string]any, len(b.fields)+1)
	for k, v := range b.fields {
		if vendorapi.IsSet(v) {
			fields[k] = v
		}
	}
	switch b.kind {
	case "text":
		fields["text"] = b.text.String()
		if len(b.citations) > 0 {
			fields["citations"] = b.citations
		}
	case "thinking":
		fields["thinking"] = b.text.String()
		if b.signature != "" {
			fields["signature"] = b.signature
		}
	case "tool_use":
		fields["id"], fields["input"] = b.call.ID, llm.NormalizeArguments(b.call.Arguments)
	default:
		if b.input.Len() > 0 {
			fields["input"] = llm.NormalizeArguments(b.input.String())
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return data
}
