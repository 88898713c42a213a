package server

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/weir-run/weir"
)

type editInput struct {
	SessionPath
	Keyed
	Position int `path:"position" minimum:"0" doc:"The position of a message of a person in the history, from 0"`
	Wait     int `query:"wait" minimum:"0" maximum:"60" doc:"Wait up to this many seconds for the reply"`
	Body     struct {
		Message json.RawMessage `json:"message" doc:"A text or a message, in the place of the one at the position"`
		Inputs  json.RawMessage `json:"inputs,omitempty" doc:"An object of inputs of the flow beside the message"`
		Model   string          `json:"model,omitempty" doc:"Replaces the model of the flow for the round"`
	}
}

type regenerateInput struct {
	SessionPath
	Keyed
	Position int `path:"position" minimum:"0" doc:"The position of a message of a person in the history, from 0"`
	Wait     int `query:"wait" minimum:"0" maximum:"60" doc:"Wait up to this many seconds for the reply"`
	Body     struct {
		Inputs json.RawMessage `json:"inputs,omitempty" doc:"An object of inputs of the flow beside the message"`
		Model  string          `json:"model,omitempty" doc:"Replaces the model of the flow for the round"`
	}
}

// editMessage sends a message in the place of another, in a fork.
func editMessage(c *call, in *editInput) (*sentOutput, error) {
	x, err := c.openOwn(in.Session)
	if err != nil {
		return nil, err
	}
	message, err := valueOf("body.message", in.Body.Message)
	if err != nil {
		return nil, err
	}
	o, served, err := c.sendOptions(x, in.Body.Inputs, in.Body.Model)
	if err != nil {
		return nil, err
	}
	return c.sentInFork(in.Key, "edit "+in.Session+" "+strconv.Itoa(in.Position), in.Body, in.Wait, func(id string) (*weir.Reply, error) {
		o.ID = id
		return c.sendFilesBy(x, served, message, o, func(ctx context.Context, message any, o weir.SendOptions) (*weir.Reply, error) {
			return x.Edit(ctx, in.Position, message, o)
		})
	})
}

// regenerateMessage sends a message again, in a fork.
func regenerateMessage(c *call, in *regenerateInput) (*sentOutput, error) {
	x, err := c.openOwn(in.Session)
	if err != nil {
		return nil, err
	}
	o, _, err := c.sendOptions(x, in.Body.Inputs, in.Body.Model)
	if err != nil {
		return nil, err
	}
	return c.sentInFork(in.Key, "regenerate "+in.Session+" "+strconv.Itoa(in.Position), in.Body, in.Wait, func(id string) (*weir.Reply, error) {
		o.ID = id
		return x.Regenerate(context.WithoutCancel(c), in.Position, o)
	})
}

// sentInFork sends a message once, and reports it. send, with the same id, returns the same reply.
func (c *call) sentInFork(key, route string, content any, wait int, send func(id string) (*weir.Reply, error)) (*sentOutput, error) {
	var reply *weir.Reply
	id, err := c.once(route, key, content, func(id string) (string, error) {
		var err error
		reply, err = send(id)
		return id, err
	})
	if err == nil && reply == nil {
		reply, err = send(id)
	}
	if err != nil {
		return nil, err
	}
	return c.sent(reply, wait)
}
