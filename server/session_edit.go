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
	m, err := c.sending(in.Session, in.Body.Inputs, in.Body.Model, in.Body.Message)
	if err != nil {
		return nil, err
	}
	m.send = func(ctx context.Context, message any, o weir.SendOptions) (*weir.Reply, error) {
		return m.session.Edit(ctx, in.Position, message, o)
	}
	return c.sentOnce(m, "edit "+in.Session+" "+strconv.Itoa(in.Position), in.Key, in.Body, in.Wait)
}

// regenerateMessage sends a message again, in a fork.
func regenerateMessage(c *call, in *regenerateInput) (*sentOutput, error) {
	m, err := c.sending(in.Session, in.Body.Inputs, in.Body.Model, nil)
	if err != nil {
		return nil, err
	}
	m.send = func(ctx context.Context, _ any, o weir.SendOptions) (*weir.Reply, error) {
		return m.session.Regenerate(ctx, in.Position, o)
	}
	return c.sentOnce(m, "regenerate "+in.Session+" "+strconv.Itoa(in.Position), in.Key, in.Body, in.Wait)
}
