package app

import (
	"encoding/json"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
)

// NodeDetails is a node as `weir show --node --json` prints it.
type NodeDetails struct {
	NodeReport
	Inputs engine.Values `json:"inputs"`
	// Templates are the inputs that the flow computes, as it has them, and Computed what they give with what the
	// journal has.
	Templates engine.Values    `json:"templates"`
	Computed  engine.Values    `json:"computed"`
	Effects   []EffectReport   `json:"effects"`
	Messages  []ContextMessage `json:"messages"`
	State     []map[string]any `json:"state"`
	Waits     []WaitReport     `json:"waits"`
	Partial   []string         `json:"partial,omitempty"` // answers that were interrupted
}

// EffectReport is an effect of a node.
type EffectReport struct {
	Key      string        `json:"key"`
	Digest   string        `json:"digest"`
	Result   engine.Value  `json:"result"`
	Error    *engine.Error `json:"error"`
	Usage    Usage         `json:"usage"`
	Micros   int64         `json:"us"`
	Manifest engine.Value  `json:"manifest"`
}

// ContextMessage is a message that a node added to a context.
type ContextMessage struct {
	Context string `json:"context"`
	convo.Message
}

// WaitReport is something that a node waited for, with the answer.
type WaitReport struct {
	Interrupt
	Answered bool         `json:"answered"`
	Answer   engine.Value `json:"answer"`
	By       string       `json:"by"`
}

// NodeDetailsOf returns a node with everything that it was given and did. added are the
// messages of AddedMessages.
func NodeDetailsOf(n *history.NodeRecord, inputs runner.NodeInputs, added []ContextMessage) *NodeDetails {
	d := &NodeDetails{
		NodeReport: NodeReportOf(n), Inputs: OrEmpty(inputs.Values), Templates: OrEmpty(inputs.Templates), Computed: OrEmpty(inputs.Computed), Messages: added,
		Effects: []EffectReport{}, State: []map[string]any{}, Waits: []WaitReport{}, Partial: n.Partial,
	}
	for _, e := range n.Effects {
		s := EffectReport{Key: e.Key, Digest: e.Digest, Result: e.Result, Error: e.Error, Micros: e.Micros, Manifest: e.Manifest}
		if e.Usage != nil {
			s.Usage = UsageOf(*e.Usage)
		}
		d.Effects = append(d.Effects, s)
	}
	for _, s := range n.State {
		d.State = append(d.State, map[string]any{"key": s.Key, "value": s.Value, "delete": s.Delete})
	}
	for _, w := range n.Waits {
		d.Waits = append(d.Waits, WaitReport{InterruptsOf([]engine.Interrupt{w.Interrupt})[0], w.Answered, w.Answer, w.By})
	}
	return d
}

// AddedMessages returns the messages that changes of contexts add; never nil.
func AddedMessages(changes []engine.ContextChange) ([]ContextMessage, error) {
	out := []ContextMessage{}
	for i := range changes {
		body, err := contextChange(changes[i].Body)
		if err != nil {
			return nil, fmt.Errorf("context %s: %w", changes[i].ID, err)
		}
		for _, m := range body.Append {
			out = append(out, ContextMessage{changes[i].ID, m})
		}
	}
	return out, nil
}

// contextChange returns the body of a context change, which a store returns decoded or as
// JSON.
func contextChange(body any) (c convo.Change, err error) {
	switch b := body.(type) {
	case *convo.Change:
		return *b, nil
	case convo.Change:
		return b, nil
	case json.RawMessage:
		err = json.Unmarshal(b, &c)
	}
	return c, err
}
