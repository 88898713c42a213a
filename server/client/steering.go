package client

import (
	"context"
	"net/http"
	"net/url"
)

// Steering is a message of a person to a node whose model works.
type Steering struct {
	// Text is what the next model call takes; it may be empty with Interrupt.
	Text string `json:"message,omitempty"`
	// Node is the path of the node, "" for the only one that works.
	Node string `json:"node,omitempty"`
	// Interrupt ends the model's answer where it is.
	Interrupt bool `json:"interrupt,omitempty"`
	// Key is as that of Start.
	Key string `json:"-"`
}

// Steered is what became of a message to a round.
type Steered struct {
	// Outcome is "steered", or "queued" if the message became the next one of the session.
	Outcome string `json:"outcome"`
	Message string `json:"message"`
	Run     string `json:"run"`
	Node    string `json:"node"`
}

// SteerRun sends a message to a node of a run that works. The error has the code steer_late if
// there is none.
func (c *Client) SteerRun(ctx context.Context, run string, s Steering) (*Run, error) {
	var out Run
	err := c.send(ctx, http.MethodPost, "/v1/runs/"+url.PathEscape(run)+"/steer", s.Key, s, &out)
	return &out, err
}

// SteerSession sends a message to the round of a session that runs, or else to the session.
func (c *Client) SteerSession(ctx context.Context, session string, s Steering) (*Steered, error) {
	var out Steered
	err := c.send(ctx, http.MethodPost, "/v1/sessions/"+url.PathEscape(session)+"/steer", s.Key, s, &out)
	return &out, err
}
