package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
)

type playgroundInput struct {
	RunPath
	Keyed
	Wait int `query:"wait" minimum:"0" maximum:"60" doc:"Wait up to this many seconds for the answer"`
	Body struct {
		Node string `json:"node" minLength:"1" doc:"The path of the node that made the call"`
		Call string `json:"call,omitempty" doc:"The key of the call, as /calls lists it; without it, the first of the node"`
		// What differs from the recorded call.
		Model       string            `json:"model,omitempty" doc:"provider/model"`
		System      *string           `json:"system,omitempty" doc:"Replaces the system instructions"`
		Temperature *float64          `json:"temperature,omitempty" minimum:"0" maximum:"2"`
		MaxOutput   int               `json:"maxOutput,omitempty" minimum:"1" maximum:"1000000"`
		Reasoning   *string           `json:"reasoning,omitempty" enum:",low,medium,high,off"`
		Messages    []json.RawMessage `json:"messages,omitempty" maxItems:"10000" doc:"Replaces all messages; the last must be of a user"`
		Tools       []playedTool      `json:"tools,omitempty" maxItems:"128" doc:"Replaces the tools that the call offered; [] offers none. None is executed: a call of one pauses the run until its output is the answer"`
	}
}

// playedTool is a tool that a model is offered and that nothing executes.
type playedTool struct {
	Name        string         `json:"name" minLength:"1" maxLength:"64" doc:"Letters, digits, - and _"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty" doc:"The JSON Schema of the arguments, an object; without it, the tool takes none"`
}

// playedToolCall is a call of a tool for whose output the run waits.
type playedToolCall struct {
	session.ClientCall
	Interrupt string `json:"interrupt" doc:"The id of the question that the output of the call answers, with POST /v1/runs/{run}/answer"`
}

// played is a call that was made again with changes.
type played struct {
	Session  string           `json:"session" doc:"Where the call was made; it is yours to delete"`
	Run      string           `json:"run" doc:"The run that made it; its usage counts as that of any run"`
	Status   string           `json:"status"`
	Text     string           `json:"text" doc:"The answer; empty while there is none"`
	Usage    *app.Usage       `json:"usage" doc:"null while there is no answer"`
	Recorded engine.Value     `json:"recorded" doc:"The recorded result of the call: message, model, stop and usage"`
	Calls    []playedToolCall `json:"calls" doc:"Calls of tools in the answer. No tool is executed: the run waits for their outputs, until they are given or it is cancelled"`
}

type playedOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     played
}

// recordedCall is the canonical form of a request to a model.
type recordedCall struct {
	Provider    string          `json:"provider"`
	Model       string          `json:"model"`
	System      string          `json:"system"`
	Messages    []convo.Message `json:"messages"`
	Temperature *float64        `json:"temperature"`
	MaxOutput   int             `json:"max_output"`
	Reasoning   string          `json:"reasoning"`
	Schema      map[string]any  `json:"schema"`
	Tools       []playedTool    `json:"tools"`
}

func (s *Server) registerPlayground() {
	register(s, operation{
		id: "playCall", method: http.MethodPost, path: "/v1/runs/{run}/playground", scope: Start, tags: []string{"runs"}, summary: "Make a recorded model call again, with changes",
		description: "The call is made by a run of its own, in a session that begins with the messages of the recorded call. The recorded run does not change.",
	}, playCall)
}

// recordedCall finds a model call of a node with what was sent.
func (c *call) recordedCall(run, node, key string) (*runner.ModelCall, *recordedCall, error) {
	v, err := c.inspect(run, 0)
	if err != nil {
		return nil, nil, err
	}
	if history.NewTimeline(v).Nodes[node] == nil {
		return nil, nil, notFound("node", node)
	}
	list, err := c.app.InspectPrompts(c, run, node)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(list, func(x runner.ModelCall) bool { return key == "" || x.Key == key })
	if i < 0 {
		return nil, nil, notFound("model call of node "+node, key)
	}
	if list[i].Request == nil {
		return nil, nil, newProblem(http.StatusConflict, engine.CodeTypesUnknown, "what the call was sent is not known: this server lacks the type of the node")
	}
	var out recordedCall
	return &list[i], &out, json.Unmarshal(list[i].Request, &out)
}

// apply changes the call as the request says.
func (r *recordedCall) apply(in *playgroundInput) error {
	b := &in.Body
	if b.Model != "" {
		r.Provider, r.Model, _ = strings.Cut(b.Model, "/")
	}
	if b.System != nil {
		r.System = *b.System
	}
	if b.Temperature != nil {
		r.Temperature = b.Temperature
	}
	if b.MaxOutput > 0 {
		r.MaxOutput = b.MaxOutput
	}
	if b.Reasoning != nil {
		r.Reasoning = *b.Reasoning
	}
	if b.Tools != nil {
		r.Tools = b.Tools
	}
	if b.Messages != nil {
		r.Messages = make([]convo.Message, len(b.Messages))
		for i, raw := range b.Messages {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.DisallowUnknownFields()
			if err := d.Decode(&r.Messages[i]); err != nil {
				p := invalidRequest("body.messages."+itoa(int64(i)), "this is not a message: "+strings.TrimPrefix(err.Error(), "json: "))
				p.Hint = `a message is an object such as {"role": "user", "text": "..."}; the messages of a run show its members`
				return p
			}
		}
	}
	if n := len(r.Messages); n == 0 || r.Messages[n-1].Role != convo.User {
		p := invalidRequest("body.messages", "the last message of the call is not one of a user")
		p.Hint = "choose the first call of the turn, or give messages that end with one of a user"
		return p
	}
	return CheckClientTools("body.tools", r.clientTools())
}

// clientTools are the tools of the call, nil for none: what models call is asked for, as of any client.
func (r *recordedCall) clientTools() *convo.ClientTools {
	if len(r.Tools) == 0 {
		return nil
	}
	out := &convo.ClientTools{}
	for _, t := range r.Tools {
		out.List = append(out.List, convo.ClientTool(t))
	}
	return out
}

// flow is a flow that makes the call. What a person or a model has written is an input of it,
// so that no template in it is evaluated. The flow of the recorded run is named in it, so that
// flows with other grants are other flows.
func (r *recordedCall) flow(of string) ([]byte, error) {
	with := map[string]any{"system": "{{ run.inputs.system }}"}
	if r.Temperature != nil {
		with["temperature"] = *r.Temperature
	}
	if r.MaxOutput > 0 {
		with["maxOutput"] = r.MaxOutput
	}
	if r.Reasoning != "" {
		with["reasoning"] = r.Reasoning
	}
	if r.Schema != nil {
		with["schema"] = r.Schema
	}
	return json.Marshal(map[string]any{
		"weir": 1, "name": "playground", "description": "Makes a call of a run of " + of + " again.",
		"inputs": map[string]any{"message": map[string]any{"type": "message", "required": true}, "system": map[string]any{"type": "text", "default": ""}},
		"nodes": map[string]any{
			"answer": map[string]any{"type": "llmRequest", "in": map[string]any{"message": "{{ run.inputs.message }}"}, "with": with},
		},
		"outputs": map[string]any{"answer": "{{ answer.text }}"},
	})
}

// mayPlay refuses models that the flow of the run may not use: a flow that a client has put
// has only what it was granted.
func (c *call) mayPlay(fingerprint, provider string) error {
	grants, err := c.app.Deployed.GrantsOf(c, fingerprint)
	if err != nil || grants == nil || slices.Contains(grants.Providers, provider) {
		return err
	}
	return newProblem(http.StatusForbidden, engine.CodeNotGranted, "the flow of the run may not use the model provider "+quoted(provider)+": this was not granted to it")
}

func playCall(c *call, in *playgroundInput) (*playedOutput, error) {
	row, err := c.run(in.Run)
	if err != nil {
		return nil, err
	}
	recorded, r, err := c.recordedCall(in.Run, in.Body.Node, in.Body.Call)
	if err != nil {
		return nil, err
	}
	if err := r.apply(in); err != nil {
		return nil, err
	}
	model := r.Provider + "/" + r.Model
	if r.Provider != app.ScriptProvider || in.Body.Model != "" {
		if _, err := c.modelOr(model, ""); err != nil {
			return nil, err
		}
	}
	if err := c.mayPlay(row.Fingerprint, r.Provider); err != nil {
		return nil, err
	}
	text, err := r.flow(row.Fingerprint)
	if err != nil {
		return nil, err
	}
	f, err := c.app.Parse("playground", text)
	if err != nil {
		return nil, err
	}
	if err := c.app.Deployed.Derive(context.WithoutCancel(c), f.Fingerprint(), row.Fingerprint); err != nil {
		return nil, err
	}
	var reply *weir.Reply
	id, err := c.once("play "+in.Run, in.Key, in.Body, func(id string) (string, error) {
		reply, err = c.play(f, id, model, r)
		return id, err
	})
	if err == nil && reply == nil { // made before: the same message has the same reply
		reply, err = c.play(f, id, model, r)
	}
	if err != nil {
		return nil, err
	}
	return c.played(reply, recorded, in.Wait)
}

// play makes a call in a session with this id. Doing it again makes no second call.
func (c *call) play(f *weir.Flow, id, model string, r *recordedCall) (*weir.Reply, error) {
	ctx := context.WithoutCancel(c)
	o := weir.SessionOptions{ID: id, New: true, User: c.who.user}
	if _, err := c.app.Store.Session(ctx, id); err == nil {
		o = weir.SessionOptions{ID: id}
	}
	x, err := c.app.Session(ctx, f, o)
	if err != nil {
		return nil, err
	}
	last := len(r.Messages) - 1
	return x.Send(ctx, r.Messages[last], weir.SendOptions{
		ID: id + ".1", By: c.by(), Origin: c.origin("playground"), Model: model, Seed: r.Messages[:last], Inputs: map[string]any{"system": r.System},
		Settings: session.RoundSettings{ClientTools: r.clientTools()},
	})
}

// played reports a call after at most some seconds.
func (c *call) played(reply *weir.Reply, recorded *runner.ModelCall, wait int) (*playedOutput, error) {
	s, err := c.sent(reply, wait)
	if err != nil {
		return nil, err
	}
	out := played{Session: s.Body.Session, Run: s.Body.Run, Status: s.Body.Status, Text: s.Body.Text, Recorded: recorded.Result, Calls: []playedToolCall{}}
	if s.Body.Report != nil {
		out.Usage = &s.Body.Report.Usage
	}
	row, err := c.run(s.Body.Run)
	if err != nil {
		return nil, err
	}
	for _, call := range session.ClientCallsOf(row.Head.Waiting) {
		out.Calls = append(out.Calls, playedToolCall{*call, call.Interrupt})
	}
	return &playedOutput{s.Status, s.Location, out}, nil
}
