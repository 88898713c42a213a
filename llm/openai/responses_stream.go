package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

func (p *Provider) responsesReader(req *llm.Request, a *answerBuilder) *responsesReader {
	return &responsesReader{
		p: p, asked: req.Model, keep: req.KeepSession, answer: a,
		calls: map[int64]*convo.Call{}, items: map[int64]json.RawMessage{},
	}
}

// responsesReader reads the events of a Responses stream. The result is the output of the final response; the events
// are only passed on to observers.
type responsesReader struct {
	p      *Provider
	asked  string
	keep   bool // the vendor stores the response
	answer *answerBuilder
	// calls and items are keyed by output index: as announced, and as completed.
	calls map[int64]*convo.Call
	items map[int64]json.RawMessage
	// part is the reasoning part of the latest event.
	part    [2]int64
	thought bool
	refused bool
}

// responsesEvent has the fields of an event that Weir reads.
type responsesEvent struct {
	Type         string          `json:"type"`
	Delta        string          `json:"delta"`
	OutputIndex  int64           `json:"output_index"`
	SummaryIndex int64           `json:"summary_index"`
	Item         json.RawMessage `json:"item"`
	Response     json.RawMessage `json:"response"`
}

// Ended is false: the last event of an answer completes it.
func (r *responsesReader) Ended() bool { return false }

// Event reads an event.
func (r *responsesReader) Event(data []byte) (bool, error) {
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, vendorapi.UnreadableAnswer(name, err)
	}
	switch e.Type {
	case "response.output_text.delta":
		r.answer.AddText(e.Delta)
	case "response.refusal.delta":
		r.refused = true
		r.answer.AddText(e.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.reason(e)
	case "response.output_item.added":
		return false, r.added(e)
	case "response.output_item.done":
		r.items[e.OutputIndex] = e.Item
		return false, r.added(e)
	case "response.completed", "response.incomplete", "response.failed":
		return true, r.Object(e.Response)
	}
	return false, nil
}

// reason emits reasoning, with a blank line between its parts.
func (r *responsesReader) reason(e responsesEvent) {
	part := [2]int64{e.OutputIndex, e.SummaryIndex}
	if r.thought && part != r.part {
		r.answer.AddReasoning("\n\n")
	}
	r.thought, r.part = true, part
	r.answer.AddReasoning(e.Delta)
}

// added announces a call: at once, or when it is done if that is its first event.
func (r *responsesReader) added(e responsesEvent) error {
	var i item
	if err := json.Unmarshal(e.Item, &i); err != nil {
		return vendorapi.UnreadableAnswer(name, err)
	}
	if i.Type != "function_call" || r.calls[e.OutputIndex] != nil {
		return nil
	}
	c := i.call()
	r.calls[e.OutputIndex] = &c
	r.answer.announce(&c, int(e.OutputIndex))
	return nil
}

// End is called only if the response was not finished.
func (r *responsesReader) End(_ bool, err error) error {
	if err != nil {
		return err
	}
	return vendorapi.StreamCut(name)
}

// response has the fields of a finished response that Weir reads.
type response struct {
	ID         string            `json:"id"`
	Model      string            `json:"model"`
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error json.RawMessage `json:"error"`
	Usage struct {
		Input        int `json:"input_tokens"`
		Output       int `json:"output_tokens"`
		InputDetails struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// Object reads the finished response.
func (r *responsesReader) Object(data []byte) error {
	var res response
	if err := json.Unmarshal(data, &res); err != nil {
		return vendorapi.UnreadableAnswer(name, err)
	}
	a := r.answer
	a.id, a.model = res.ID, cmp.Or(res.Model, a.model)
	a.usage = llm.Usage{
		Input: res.Usage.Input, Cached: res.Usage.InputDetails.Cached,
		Output: res.Usage.Output, Reasoning: res.Usage.OutputDetails.Reasoning,
	}
	switch res.Status {
	case "completed":
		a.stop = llm.StopEnd
	case "incomplete":
		a.stop = llm.StopLength
		if res.Incomplete.Reason == "content_filter" {
			a.stop = llm.StopFilter
		}
	case "failed":
		return r.p.classify(0, decodeFault(res.Error))
	default:
		return vendorapi.UnreadableAnswer(name, fmt.Errorf("the response ended as %q", res.Status))
	}
	return r.completeAnswer(&res)
}

// completeAnswer reads text, reasoning and calls from the output, and emits what was not streamed.
func (r *responsesReader) completeAnswer(res *response) error {
	raw := res.Output
	if len(raw) == 0 { // some servers name the items only in their done events
		for _, index := range slices.Sorted(maps.Keys(r.items)) {
			raw = append(raw, r.items[index])
		}
	}
	var (
		text     strings.Builder
		thoughts []string
	)
	for n, data := range raw {
		var i item
		if err := json.Unmarshal(data, &i); err != nil {
			return vendorapi.UnreadableAnswer(name, err)
		}
		switch i.Type {
		case "message":
			text.WriteString(i.words())
			r.refused = r.refused || i.refuses()
		case "reasoning":
			thoughts = append(thoughts, i.thoughts())
		case "function_call":
			r.completeCall(i, n)
		}
	}
	rest, ok := strings.CutPrefix(text.String(), r.answer.Text())
	if !ok {
		return vendorapi.UnreadableAnswer(name, fmt.Errorf("the text of the finished response differs from the streamed text"))
	}
	if !r.thought {
		r.answer.AddReasoning(joined(thoughts))
	}
	r.answer.AddText(rest)
	if r.refused {
		r.answer.stop = llm.StopFilter
	}
	r.answer.native = r.p.keep(r.asked, raw)
	if r.keep && res.Status == "completed" {
		r.answer.session = res.ID
	}
	return nil
}

// joined joins the non-empty thoughts with blank lines.
func joined(thoughts []string) string {
	said := slices.DeleteFunc(thoughts, func(s string) bool { return s == "" })
	return strings.Join(said, "\n\n")
}

// completeCall adds a call of the output. Arguments that are not JSON mark a call that a limit cut off; complete
// omits it.
func (r *responsesReader) completeCall(i item, index int) {
	c := i.call()
	if i.Status == "incomplete" && c.Arguments == "" {
		c.Arguments = "{"
	}
	for _, heard := range r.calls {
		if heard.ID == c.ID {
			heard.Arguments = c.Arguments
			r.answer.calls = append(r.answer.calls, heard)
			return
		}
	}
	r.answer.announce(&c, index)
	r.answer.calls = append(r.answer.calls, &c)
}
