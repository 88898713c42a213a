package agui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/session"
)

// Register adds the endpoint /agui/FLOW to a server.
func Register(s *server.Server) {
	s.Handle("POST /agui/{flow}", server.Start, server.Face{}, serve)
}

// input is RunAgentInput of the protocol. Members that it adds later are ignored, as it asks.
type input struct {
	ThreadID string    `json:"threadId"`
	RunID    string    `json:"runId"`
	Messages []message `json:"messages"`
	Tools    []toolOf  `json:"tools"`
	Context  []struct {
		Description string `json:"description"`
		Value       string `json:"value"`
	} `json:"context"`
	Resume    []resume `json:"resume"`
	Forwarded struct {
		Weir steering `json:"weir"`
	} `json:"forwardedProps"`
}

type resume struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload"`
}

// round is one run of the protocol.
type round struct {
	in      *input
	c       *server.Caller
	flow    *app.ServedFlow
	session *weir.Session
	reply   *weir.Reply
	steered *session.SteerReply // set for a message to the round that runs
	tools   map[string]bool     // names of the tools of the client
}

// serve answers one run of the protocol with its events.
func serve(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	x := &round{c: c, tools: map[string]bool{}}
	err := x.read(r)
	if err == nil {
		err = x.start()
	}
	if err != nil {
		c.Fail(w, err)
		return
	}
	x.stream(w)
}

func (x *round) read(r *http.Request) (err error) {
	data, err := server.ReadJSON(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &x.in)
	}
	if err != nil {
		return server.InvalidRequest("body", "the body is no RunAgentInput: "+err.Error())
	}
	if x.in == nil {
		return server.InvalidRequest("body", "the body is no RunAgentInput: null")
	}
	if x.in.ThreadID == "" || x.in.RunID == "" {
		return server.InvalidRequest("body", "threadId and runId are required")
	}
	if x.flow, err = x.c.Flow(r.PathValue("flow")); err != nil {
		return err
	}
	if user := r.Header.Get("X-Weir-User"); user != "" && x.c.MayActAs() {
		if x.c, err = x.c.As(user); err != nil {
			return err
		}
		return x.c.RequireFlow(r.PathValue("flow")) // the person's access counts as well
	}
	return nil
}

// start sends the message of the client, or its answers.
func (x *round) start() (err error) {
	x.session, err = x.c.App().Session(x.detached(), x.flow.Flow, weir.SessionOptions{User: x.c.User(), Thread: x.in.ThreadID})
	if err != nil {
		return err
	}
	if len(x.in.Resume) > 0 {
		return x.answer()
	}
	outputs, err := x.outputs()
	if err != nil {
		return err
	}
	if outputs != nil {
		return x.sendOutputs(outputs)
	}
	return x.send()
}

// send sends the last message of the client.
func (x *round) send() error {
	history, err := x.messages()
	if err != nil {
		return err
	}
	n := len(history) - 1
	if n < 0 || history[n].Role != convo.User {
		return server.InvalidRequest("body.messages", "the last message must be one of the user")
	}
	if x.in.Forwarded.Weir.Steer {
		if len(history[n].Parts) > 0 {
			return server.InvalidRequest("body.messages", "a message that steers is a text")
		}
		return x.steer(history[n].Text)
	}
	o := weir.SendOptions{By: x.c.By(), Origin: x.c.Origin("agui"), Settings: session.RoundSettings{System: x.system()}}
	if o.Settings.ClientTools, err = x.in.clientTools(); err != nil {
		return err
	}
	x.addTools(o.Settings.ClientTools)
	message, err := x.content(&history[n])
	if err != nil {
		return err
	}
	row, err := x.session.Info(x.detached())
	if err != nil {
		return err
	}
	if row.Length == 0 && row.Rounds == 0 && row.Queued == 0 {
		o.Seed = history[:n] // a conversation that the server does not know
	}
	if o.Model, err = x.c.Model(x.flow); err != nil {
		return err
	}
	o.ID, err = x.c.Once("agui "+x.session.ID, x.in.RunID, []any{message}, func(id string) (string, error) {
		o.ID = id
		err := x.checkNoCalls()
		if err == nil {
			x.reply, err = x.session.Send(x.detached(), message, o)
		}
		return id, err
	})
	if err == nil && x.reply == nil { // the run was sent before
		o.Seed = nil
		x.reply, err = x.session.Send(x.detached(), message, o)
	}
	return err
}

// detached returns the context of what continues when the client disconnects.
func (x *round) detached() context.Context { return context.WithoutCancel(x.c.Context()) }

// answer gives the answers of the client to the open questions of the round. All are checked
// before the first is given.
func (x *round) answer() error {
	row, err := x.session.Info(x.detached())
	if err != nil {
		return err
	}
	if row.Holder == "" {
		return server.NewProblem(http.StatusConflict, engine.CodeInterruptUnknown, "the thread waits for nothing")
	}
	run, err := x.c.App().Store.Run(x.detached(), row.Holder)
	if err != nil {
		return err
	}
	if err := x.c.Require(server.Answer); err != nil {
		return err
	}
	answers := map[string]engine.Value{}
	for i, e := range x.in.Resume {
		v, err := valueFor(run.Head.Waiting, e)
		if err != nil {
			p := x.c.ProblemOf(err)
			p.Errors = []server.Mistake{{Place: "body.resume." + e.InterruptID, Message: p.Detail}}
			return p
		}
		if e.Status == "cancelled" {
			return x.cancel(row.Holder)
		}
		answers[x.in.Resume[i].InterruptID] = v
	}
	last := x.in.Resume[len(x.in.Resume)-1].InterruptID
	for _, e := range x.in.Resume[:len(x.in.Resume)-1] {
		if _, err := x.c.App().Answer(x.detached(), row.Holder, e.InterruptID, answers[e.InterruptID], x.c.By()); err != nil {
			return err
		}
	}
	x.reply, err = x.session.Answer(x.detached(), last, answers[last], weir.SendOptions{By: x.c.By()})
	return err
}

// valueFor returns the answer to an open question.
func valueFor(open []engine.Interrupt, e resume) (engine.Value, error) {
	for i := range open {
		q := &open[i]
		if q.ID != e.InterruptID {
			continue
		}
		if e.Status == "cancelled" {
			return nil, nil
		}
		if len(e.Payload) == 0 {
			return nil, server.InvalidRequest("body.resume", "the answer has no payload")
		}
		v, err := engine.ParseValue(e.Payload)
		if err == nil {
			err = node.CheckAnswer(q.Schema, v)
		}
		if err != nil {
			err = server.NewProblem(http.StatusUnprocessableEntity, engine.CodeAnswer, err.Error())
		}
		return v, err
	}
	return nil, server.NewProblem(http.StatusConflict, engine.CodeInterruptUnknown, "the thread has no open interrupt "+e.InterruptID)
}

// errCancelled means that the client cancelled the question, and with it the round.
var errCancelled = errors.New("cancelled by the client")

func (x *round) cancel(run string) error {
	_, err := x.c.App().Cancel(x.detached(), run, x.c.By(), errCancelled.Error())
	return err
}
