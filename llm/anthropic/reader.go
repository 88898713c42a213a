package anthropic

import (
	"encoding/json"
	"errors"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// event has the fields of a stream event that Weir reads.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *message        `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   delta           `json:"delta"`
	Usage   *usage          `json:"usage"`
}

// message is the start of an answer or, if it is not streamed, the whole answer.
type message struct {
	Type    string            `json:"type"`
	ID      string            `json:"id"`
	Model   string            `json:"model"`
	Usage   *usage            `json:"usage"`
	Content []json.RawMessage `json:"content"`
	Stop    string            `json:"stop_reason"`
}

type delta struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	JSON      string          `json:"partial_json"`
	Citation  json.RawMessage `json:"citation"`
	Stop      string          `json:"stop_reason"`
}

// usage is cumulative: a later event replaces the numbers of an earlier one.
type usage struct {
	Input    *int `json:"input_tokens"`
	Read     *int `json:"cache_read_input_tokens"`
	Creation *int `json:"cache_creation_input_tokens"`
	Output   *int `json:"output_tokens"`
	Details  *struct {
		Thinking *int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// reader reads one stream.
type reader struct {
	p      *Provider
	answer *answerBuilder
	open   map[int]*blockBuilder
	counts llm.Usage // Input without tokens read from or written to the cache
}

func newReader(p *Provider, a *answerBuilder) *reader {
	return &reader{p: p, answer: a, open: map[int]*blockBuilder{}}
}

// Ended reports whether a stop reason came: only message_stop follows it.
func (r *reader) Ended() bool { return r.answer.stop != "" }

// Event reads an event and returns true when the answer is complete.
func (r *reader) Event(data []byte) (bool, error) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return false, vendorapi.UnreadableAnswer(name, err)
	}
	switch {
	case e.Type == "message_start" && e.Message != nil:
		return false, r.begin(e.Message)
	case e.Type == "content_block_start":
		return false, r.beginBlock(&e)
	case e.Type == "content_block_delta":
		return false, r.appendDelta(&e)
	case e.Type == "content_block_stop":
		r.close(e.Index)
	case e.Type == "message_delta":
		r.count(e.Usage)
		r.stop(e.Delta.Stop)
	case e.Type == "message_stop":
		return true, r.completeAnswer()
	}
	return false, nil // a ping, or an event of a later version of the API
}

func (r *reader) begin(m *message) error {
	a := r.answer
	if m.ID != "" {
		a.id = m.ID
	}
	if m.Model != "" {
		a.model = m.Model
	}
	r.count(m.Usage)
	for _, raw := range m.Content {
		b, err := a.beginBlock(raw)
		if err != nil {
			return err
		}
		b.closed = true
	}
	r.stop(m.Stop)
	return nil
}

func (r *reader) beginBlock(e *event) error {
	r.close(e.Index)
	b, err := r.answer.beginBlock(e.Block)
	if err != nil {
		return err
	}
	r.open[e.Index] = b
	return nil
}

func (r *reader) close(index int) {
	if b := r.open[index]; b != nil {
		b.closed = true
		delete(r.open, index)
	}
}

// appendDelta adds a piece to a block.
func (r *reader) appendDelta(e *event) error {
	b := r.open[e.Index]
	if b == nil {
		return vendorapi.UnreadableAnswer(name, errors.New("a delta for a content block that was not started"))
	}
	d := e.Delta
	switch {
	case d.Type == "text_delta" && b.kind == "text":
		b.text.WriteString(d.Text)
		r.answer.AddText(d.Text)
	case d.Type == "thinking_delta" && b.kind == "thinking":
		r.answer.addThinking(d.Thinking, b.text.Len() == 0)
		b.text.WriteString(d.Thinking)
	case d.Type == "signature_delta":
		b.signature += d.Signature
	case d.Type == "input_json_delta":
		b.input.WriteString(d.JSON)
	case d.Type == "citations_delta" && vendorapi.IsSet(d.Citation):
		b.citations = append(b.citations, d.Citation)
	}
	return nil
}

// stop maps a stop_reason ("Handling stop reasons"). An undocumented one counts as a normal end, because the server
// completed the answer properly.
func (r *reader) stop(reason string) {
	a := r.answer
	switch reason {
	case "":
	case "max_tokens", "model_context_window_exceeded":
		a.stop = llm.StopLength
	case "tool_use":
		a.stop = llm.StopCalls
	case "refusal":
		a.stop = llm.StopFilter
	default:
		a.stop, a.paused = llm.StopEnd, reason == "pause_turn"
	}
}

func (r *reader) count(u *usage) {
	if u == nil {
		return
	}
	set := func(to *int, from *int) {
		if from != nil && *from >= 0 {
			*to = *from
		}
	}
	set(&r.counts.Input, u.Input)
	set(&r.counts.Cached, u.Read)
	set(&r.counts.Written, u.Creation)
	set(&r.counts.Output, u.Output)
	if u.Details != nil {
		set(&r.counts.Reasoning, u.Details.Thinking)
	}
}

// End is called when the stream ends without its last event.
func (r *reader) End(_ bool, err error) error {
	if err != nil {
		return err
	}
	return r.completeAnswer()
}

// completeAnswer completes the answer, which is whole if the vendor has sent a stop reason.
func (r *reader) completeAnswer() error {
	if r.answer.stop == "" {
		return vendorapi.StreamCut(name)
	}
	r.addUsage()
	return nil
}

// addUsage copies the usage of the stream to the answer.
func (r *reader) addUsage() {
	u := r.counts
	u.Input += u.Cached + u.Written
	r.answer.usage = r.answer.usage.Add(u)
}

// Object reads an answer that a server sent as one object.
func (r *reader) Object(data []byte) error {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return vendorapi.UnreadableAnswer(name, err)
	}
	if err := r.begin(&m); err != nil {
		return err
	}
	return r.completeAnswer()
}
