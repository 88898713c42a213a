package cli

import (
	"context"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/runner"
)

// steeredReport is a message that a running round takes, as `weir send --steer --json` prints it.
type steeredReport struct {
	Session string `json:"session"`
	Message string `json:"message"`
	Status  string `json:"status"` // "steered"
	Run     string `json:"run"`
	Node    string `json:"node"`
}

// steer sends a message to the round that runs. If it became the next message of the session
// instead, the reply to it is shown.
func (c *chat) steer(ctx context.Context, m runner.Steering) error {
	reply, err := c.session.Steer(ctx, m, c.send)
	switch {
	case err != nil:
		return err
	case reply.Queued != nil:
		c.p.notef("no node of a round could take the message; it is sent as the next one")
		return c.showReply(ctx, reply.Queued)
	case c.p.json:
		writeJSON(c.p.out, steeredReport{Session: c.session.ID, Message: reply.Message, Status: "steered", Run: reply.Run, Node: reply.Node})
	default:
		c.p.notef("%s of run %s takes the message: %s", app.Printable(reply.Node), reply.Run, c.p.commandLine("show", reply.Run))
	}
	return nil
}
