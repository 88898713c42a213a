package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// steerBody is a message of a person to a node that works.
type steerBody struct {
	Message   string `json:"message,omitempty" maxLength:"200000" doc:"A text that the next model call of the node takes. It may be left out with interrupt."`
	Node      string `json:"node,omitempty" maxLength:"2000" doc:"The path of the node, PATH>NODE in a child run. It is needed if several nodes work that could take the message."`
	Interrupt bool   `json:"interrupt,omitempty" doc:"End the model's answer where it is"`
}

type steerRunInput struct {
	CommandInput
	Body steerBody
}

type steerSessionInput struct {
	SessionPath
	Keyed
	Body steerBody
}

// steered is what became of a message to a round.
type steered struct {
	Outcome string `json:"outcome" enum:"steered,queued" doc:"steered: a node of the round takes the message. queued: no node could, and it is the next message to the session"`
	Message string `json:"message" doc:"The id of the message"`
	Run     string `json:"run" doc:"The round that takes the message; empty if it was queued"`
	Node    string `json:"node" doc:"The path of the node that takes the message"`
}

func (s *Server) registerSteering() {
	register(s, operation{
		id: "listSteerable", method: http.MethodGet, path: "/v1/runs/{run}/steer", scope: Read,
		summary: "List the nodes that a message can be sent to", tags: []string{"runs"},
	}, listSteerable)
	register(s, operation{
		id: "steerRun", method: http.MethodPost, path: "/v1/runs/{run}/steer", scope: Start,
		summary: "Send a message to a node that works, or interrupt its model", tags: []string{"runs"},
	}, steerRun)
	register(s, operation{
		id: "steerSession", method: http.MethodPost, path: "/v1/sessions/{session}/steer", scope: Start,
		summary: "Send a message to the round that runs, or interrupt its model", tags: []string{"sessions"},
	}, steerSession)
}

// steerableList names the nodes that a message can be sent to.
type steerableList struct {
	Nodes []string `json:"nodes" doc:"Paths of nodes that work and take messages, PATH>NODE in child runs"`
}

func listSteerable(c *call, in *RunPath) (*body[steerableList], error) {
	v, err := c.inspect(in.Run, 0)
	if err != nil {
		return nil, err
	}
	list, err := c.appendSteerable([]string{}, "", v.Run)
	return bodyOf(steerableList{list}), err
}

// appendSteerable appends the nodes of a run and of its child runs, whose paths begin with prefix.
func (c *call) appendSteerable(out []string, prefix string, r *engine.Run) ([]string, error) {
	for _, path := range runner.SteerableNodes(r) {
		child, _, isChild := r.ChildBelow(path)
		if !isChild {
			out = append(out, prefix+path)
			continue
		}
		v, err := c.app.Inspect(c, child.Start.Run, 0)
		if errors.Is(err, store.ErrNotFound) || err == nil && v.Run.Start == nil {
			continue // it has not begun
		}
		if err == nil {
			out, err = c.appendSteerable(out, prefix+path, v.Run)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (b *steerBody) check() error {
	if b.Message == "" && !b.Interrupt {
		return invalidRequest("body", "give a message, or interrupt")
	}
	return nil
}

func (b *steerBody) steering(id, by string) runner.Steering {
	return runner.Steering{ID: id, Path: b.Node, Text: b.Message, Interrupt: b.Interrupt, By: by}
}

func steerRun(c *call, in *steerRunInput) (*body[app.RunReport], error) {
	if err := in.Body.check(); err != nil {
		return nil, err
	}
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	_, err := c.once("steer "+in.Run, in.Key, in.Body, func(id string) (string, error) {
		_, err := c.app.Steer(context.WithoutCancel(c), in.Run, in.Body.steering(id, c.by()))
		return in.Run, err
	})
	if err != nil {
		return nil, err
	}
	report, err := c.report(in.Run, in.Wait)
	return bodyOf(report), err
}

func steerSession(c *call, in *steerSessionInput) (*body[steered], error) {
	if err := in.Body.check(); err != nil {
		return nil, err
	}
	x, err := c.openOwn(in.Session)
	if err != nil {
		return nil, err
	}
	var reply session.SteerReply
	send := func(id string) (string, error) {
		reply, err = x.Steer(context.WithoutCancel(c), in.Body.steering(id, c.by()), weir.SendOptions{Origin: c.origin("api")})
		return id, err
	}
	id, err := c.once("steer "+in.Session, in.Key, in.Body, send)
	if err == nil && reply == (session.SteerReply{}) { // sent before
		_, err = send(id)
	}
	if err != nil {
		return nil, err
	}
	out := steered{Outcome: "steered", Message: id, Run: reply.Run, Node: reply.Node}
	if reply.Queued != nil {
		out.Outcome, out.Run = "queued", ""
	}
	return bodyOf(out), nil
}
