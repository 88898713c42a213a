package agui

import (
	"github.com/weir-run/weir"
	"github.com/weir-run/weir/runner"
)

// steering is the member "weir" of forwardedProps: the message is for the round that runs.
type steering struct {
	Steer     bool   `json:"steer"`
	Node      string `json:"node"`
	Interrupt bool   `json:"interrupt"`
}

// steer sends the message of the client to the round that runs. If no node of it can take the
// message, the message starts the next round, which is then that of the run.
func (x *round) steer(text string) error {
	want := &x.in.Forwarded.Weir
	send := func(id string) (string, error) {
		m := runner.Steering{ID: id, Path: want.Node, Text: text, Interrupt: want.Interrupt, By: x.c.By()}
		reply, err := x.session.Steer(x.detached(), m, weir.SendOptions{Origin: x.c.Origin("agui")})
		if x.reply = reply.Queued; err == nil && x.reply == nil {
			x.steered = &reply
		}
		return id, err
	}
	id, err := x.c.Once("agui steer "+x.session.ID, x.in.RunID, []any{text, *want}, send)
	if err == nil && x.reply == nil && x.steered == nil { // the run was sent before
		_, err = send(id)
	}
	return err
}

// taken ends a run whose message the running round takes.
func (e *events) taken(ids map[string]any) error {
	to := e.round.steered
	err := e.send("CUSTOM", map[string]any{"name": "weir.steered", "value": map[string]any{"run": to.Run, "node": to.Node}})
	if err != nil {
		return err
	}
	return e.send("RUN_FINISHED", merge(ids, map[string]any{"outcome": map[string]any{"type": "success"}}))
}
