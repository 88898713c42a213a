package gemini

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// interactionReader reads the events of an interaction.
type interactionReader struct {
	p      *Provider
	answer *answerBuilder
	steps  map[int]*step
	keep   bool
	// blocked is set if the model's output ended in an error of its own.
	blocked bool
}

// step is one step as received so far.
type step struct {
	kind      string
	id, name  string
	text      strings.Builder // text, or the summary of a thought
	args      strings.Builder
	whole     string // arguments that were sent at once
	signature string
}

// interactionEvent has the fields of an event that Weir reads.
type interactionEvent struct {
	Type        string             `json:"event_type"`
	Index       int                `json:"index"`
	Step        *interactionStep   `json:"step"`
	Delta       *interactionDelta  `json:"delta"`
	Interaction *interactionObject `json:"interaction"`
}

type interactionContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type interactionStep struct {
	Type      string               `json:"type"`
	ID        string               `json:"id"`
	Name      string               `json:"name"`
	Arguments json.RawMessage      `json:"arguments"`
	Content   []interactionContent `json:"content"`
	Signature string               `json:"signature"`
	Summary   []interactionContent `json:"summary"`
	Error     json.RawMessage      `json:"error"`
}

type interactionDelta struct {
	Type      string              `json:"type"`
	Text      string              `json:"text"`
	Arguments string              `json:"arguments"`
	Signature string              `json:"signature"`
	Content   *interactionContent `json:"content"`
}

type interactionObject struct {
	ID     string            `json:"id"`
	Status string            `json:"status"`
	Model  string            `json:"model"`
	Steps  []interactionStep `json:"steps"`
	Errors []json.RawMessage `json:"errors"`
	Usage  *struct {
		Input   int `json:"total_input_tokens"`
		ToolUse int `json:"total_tool_use_tokens"`
		Cached  int `json:"total_cached_tokens"`
		Output  int `json:"total_output_tokens"`
		Thought int `json:"total_thought_tokens"`
	} `json:"usage"`
}

// Ended is false: the last event of an answer completes it.
func (r *interactionReader) Ended() bool { return false }

// Event reads an event.
func (r *interactionReader) Event(data []byte) (bool, error) {
	var e interactionEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, vendorapi.UnreadableAnswer(name, err)
	}
	switch e.Type {
	case "interaction.created":
		if e.Interaction != nil {
			r.answer.id = cmp.Or(e.Interaction.ID, r.answer.id)
		}
	case "step.start":
		if e.Step != nil {
			r.start(e.Index, e.Step)
		}
	case "step.delta":
		if e.Delta != nil {
			r.delta(r.at(e.Index), e.Delta)
		}
	case "interaction.completed":
		if e.Interaction == nil {
			return false, vendorapi.UnreadableAnswer(name, fmt.Errorf("the event of a completed interaction has no interaction"))
		}
		return true, r.complete(e.Interaction)
	}
	return false, nil
}

// Object reads an interaction that was not streamed.
func (r *interactionReader) Object(data []byte) error {
	if list, ok := asList(data); ok {
		return r.p.readList(list, r)
	}
	var i interactionObject
	if err := json.Unmarshal(data, &i); err != nil {
		return vendorapi.UnreadableAnswer(name, err)
	}
	if i.Status == "" {
		return vendorapi.StreamCut(name)
	}
	return r.complete(&i)
}

// End is called only if the interaction was not completed.
func (r *interactionReader) End(_ bool, err error) error {
	if err != nil {
		return err
	}
	return vendorapi.StreamCut(name)
}

func (r *interactionReader) at(index int) *step {
	if r.steps[index] == nil {
		r.steps[index] = &step{}
	}
	return r.steps[index]
}

// start begins a step with the content of its start event.
func (r *interactionReader) start(index int, from *interactionStep) {
	s := r.at(index)
	s.kind = from.Type
	switch s.kind {
	case "model_output":
		for _, c := range from.Content {
			r.addText(s, c.Text)
		}
		r.blocked = r.blocked || vendorapi.IsSet(from.Error)
	case "thought":
		s.signature = from.Signature
		for _, c := range from.Summary {
			r.addReasoning(s, c.Text)
		}
	case "function_call":
		s.id, s.name = from.ID, from.Name
		if args := string(from.Arguments); args != "{}" && args != "null" {
			s.whole = args
		}
		r.answer.announce(r.answer.newCall(s.id, s.name, index))
	}
}

func (r *interactionReader) delta(s *step, d *interactionDelta) {
	switch d.Type {
	case "text":
		r.addText(s, d.Text)
	case "thought_summary":
		if d.Content != nil {
			r.addReasoning(s, d.Content.Text)
		}
	case "thought_signature":
		s.signature += d.Signature
	case "arguments_delta":
		s.args.WriteString(d.Arguments)
	}
}

func (r *interactionReader) addText(s *step, text string) {
	s.text.WriteString(text)
	r.answer.AddText(text)
}

func (r *interactionReader) addReasoning(s *step, text string) {
	s.text.WriteString(text)
	r.answer.AddReasoning(text)
}

// complete reads the finished interaction: the parts of its steps that were not streamed, and the reason of its end.
func (r *interactionReader) complete(i *interactionObject) error {
	a := r.answer
	a.api, a.id, a.model = apiInteractions, cmp.Or(i.ID, a.id), cmp.Or(i.Model, a.model)
	if u := i.Usage; u != nil {
		a.usage = llm.Usage{
			Input: u.Input + u.ToolUse, Cached: u.Cached, Output: u.Output + u.Thought, Reasoning: u.Thought,
		}
	}
	switch i.Status {
	case "completed":
		a.stop = llm.StopEnd
	case "requires_action":
		a.stop = llm.StopCalls
	case "incomplete", "budget_exceeded", "requires_continuation":
		a.stop = llm.StopLength
	case "failed":
		if len(i.Errors) > 0 {
			return r.p.classify(0, decodeFault(i.Errors[0]))
		}
		return r.p.classify(0, fault{Message: "the interaction failed"})
	default:
		return vendorapi.UnreadableAnswer(name, fmt.Errorf("the interaction ended as %q", i.Status))
	}
	for n := range i.Steps {
		if r.steps[n] == nil {
			r.start(n, &i.Steps[n])
		} else if vendorapi.IsSet(i.Steps[n].Error) {
			r.blocked = true
		}
	}
	if r.blocked {
		a.stop = llm.StopFilter
	}
	return r.completeAnswer()
}

// completeAnswer creates the answer from the steps. A call that a limit cut off is omitted. The vendor's session then
// contains more than the answer and is not continued.
func (r *interactionReader) completeAnswer() error {
	a := r.answer
	partial := a.stop == llm.StopLength || a.stop == llm.StopFilter
	cut := false
	for _, n := range slices.Sorted(maps.Keys(r.steps)) {
		s := r.steps[n]
		switch s.kind {
		case "model_output":
			text := s.text.String()
			a.parts = append(a.parts, nativePart{Text: &text})
		case "thought":
			summary := s.text.String()
			a.parts = append(a.parts, nativePart{Sealed: true, Text: &summary, Thought: true, Signature: s.signature})
		case "function_call":
			args := cmp.Or(s.args.String(), s.whole)
			if partial && !json.Valid([]byte(cmp.Or(args, "{}"))) {
				cut = true
				continue
			}
			if s.name == "" {
				return vendorapi.UnreadableAnswer(name, fmt.Errorf("a tool call has no name"))
			}
			c := a.newCall(s.id, s.name, n)
			c.Arguments = cmp.Or(strings.TrimSpace(args), "{}")
			a.calls = append(a.calls, c)
			a.parts = append(a.parts, nativePart{Call: &nativeCall{ID: s.id, Name: c.Name, Args: c.Arguments}})
		}
	}
	if cut {
		a.parts = nil
	}
	if r.keep && !partial {
		a.session = a.id
	}
	return nil
}
