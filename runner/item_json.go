package runner

import (
	"bytes"
	"encoding/json"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// The types of live output in JSON. The type of an event is its kind, such as "node.started".
const (
	typeText      = "model.text"
	typeReasoning = "model.reasoning"
	typeCall      = "model.call"
	typeUsage     = "model.usage"
	typeWaiting   = "model.waiting"
	typeOutput    = "code.output"
	typeSnapshot  = "live.snapshot"
	typeRetracted = "live.retracted"
	typeInterim   = "live.interim"
	typeGap       = "live.gap"
)

// liveJSON is the JSON form of live output.
type liveJSON struct {
	Run     string  `json:"run"`
	Above   string  `json:"above,omitempty"`
	At      int64   `json:"at"` // Unix milliseconds
	Type    string  `json:"type"`
	Node    string  `json:"node,omitempty"`
	Attempt int     `json:"attempt,omitempty"`
	Effect  string  `json:"effect,omitempty"`
	Interim bool    `json:"interim,omitempty"`
	Text    *string `json:"text,omitempty"`

	// For a snapshot, besides Text.
	Reasoning string `json:"reasoning,omitempty"`
	Stdout    string `json:"stdout,omitempty"`
	Stderr    string `json:"stderr,omitempty"`

	Stream string      `json:"stream,omitempty"` // stdout or stderr
	Call   *convo.Call `json:"call,omitempty"`
	Usage  *llm.Usage  `json:"usage,omitempty"`

	// For a model call that waits: the minimum wait, and its reason.
	Millis *int64  `json:"ms,omitempty"`
	Why    *string `json:"why,omitempty"`
	About  *string `json:"about,omitempty"`
}

// MarshalJSON gives an object with the members run, at, type and, where it is not empty,
// above. That of an event has its number and the event's own fields, as the journal has
// them; those that would be called as one of these are called child (run of
// child.reported), event (at of run.forked) and step (number of step.recorded). That of live output has node, attempt, effect and interim, and by its type:
//
//	model.text, model.reasoning   text
//	model.call                    call {id, name, arguments}
//	model.usage                   usage
//	model.waiting                 ms, why, about: the call waits at least so long
//	code.output                   stream (stdout or stderr), text
//	live.snapshot                 text, reasoning, stdout, stderr: the whole output of the effect so far
//	live.retracted                what was seen of the effect is void
//	live.interim                  the text of the effect is no answer of its node
//	live.gap                      what was seen of effects that have not completed is void
//
// The cursor is no part of it.
func (it Item) MarshalJSON() ([]byte, error) {
	if it.Event == nil {
		return marshalReadable(it.liveJSON())
	}
	head, err := marshalReadable(struct {
		Run    string `json:"run"`
		Number int64  `json:"number"`
		At     int64  `json:"at"`
		Above  string `json:"above,omitempty"`
	}{it.Run, it.Number, it.At, it.PathPrefix})
	if err != nil {
		return nil, err
	}
	list, err := engine.EncodeEvents(nil, []engine.Event{it.Event})
	if err != nil {
		return nil, err
	}
	own := list[1 : len(list)-1] // without "[" and "]"
	if from, to := renamedMember(it.Event); from != "" {
		if own, err = renameMember(own, from, to); err != nil {
			return nil, err
		}
	}
	head[len(head)-1] = ','
	return append(head, own[1:]...), nil
}

// renamedMember returns an event's field with the same name as a member of every item, and its name in an item.
func renamedMember(e engine.Event) (from, to string) {
	switch e.(type) {
	case *engine.ChildReported:
		return "run", "child"
	case *engine.RunForked:
		return "at", "event"
	case *engine.StepRecorded:
		return "number", "step"
	}
	return "", ""
}

// renameMember renames a member of an object.
func renameMember(object []byte, from, to string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	_, err := d.Token()
	out := []byte{'{'}
	for err == nil && d.More() {
		var name json.Token
		if name, err = d.Token(); err != nil {
			break
		}
		var value json.RawMessage
		err = d.Decode(&value)
		if name == from {
			name = to
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		text, _ := name.(string)
		out = append(append(engine.AppendString(out, text), ':'), value...)
	}
	return append(out, '}'), err
}

// marshalReadable encodes v as JSON in which ">" is not escaped.
func marshalReadable(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// liveJSON returns the JSON of an item that is not an event.
func (it *Item) liveJSON() liveJSON {
	o := liveJSON{
		Run: it.Run, Above: it.PathPrefix, At: it.At,
		Node: it.Path, Attempt: it.Attempt, Effect: it.Effect, Interim: it.Interim,
	}
	c := it.Chunk
	switch {
	case it.Gap:
		o.Type = typeGap
	case it.Retracted:
		o.Type = typeRetracted
	case c == nil:
		o.Type = typeInterim
	case it.Snapshot:
		o.Type, o.Text, o.Reasoning, o.Stdout, o.Stderr = typeSnapshot, &c.Text, c.Reasoning, c.Stdout, c.Stderr
	case c.Wait > 0:
		ms := c.Wait.Milliseconds()
		o.Type, o.Millis, o.Why, o.About = typeWaiting, &ms, &c.WaitReason, &c.WaitDetail
	case c.Call != nil:
		o.Type, o.Call = typeCall, c.Call
	case c.Usage != nil:
		o.Type, o.Usage = typeUsage, c.Usage
	case c.Reasoning != "":
		o.Type, o.Text = typeReasoning, &c.Reasoning
	case c.Stdout != "":
		o.Type, o.Text, o.Stream = typeOutput, &c.Stdout, "stdout"
	case c.Stderr != "":
		o.Type, o.Text, o.Stream = typeOutput, &c.Stderr, "stderr"
	default:
		o.Type, o.Text = typeText, &c.Text
	}
	return o
}
