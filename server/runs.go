package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

type startInput struct {
	Keyed
	Wait int `query:"wait" minimum:"0" maximum:"60" doc:"Wait up to this many seconds until the run has ended or waits for an answer"`
	Body struct {
		Flow    string          `json:"flow" minLength:"1" doc:"The name of a flow of the server"`
		Inputs  json.RawMessage `json:"inputs,omitempty" doc:"An object of inputs"`
		State   json.RawMessage `json:"state,omitempty" doc:"An object: the initial state, over that of the flow"`
		Model   string          `json:"model,omitempty" doc:"Replaces the model of the flow: provider/model"`
		Targets []string        `json:"targets,omitempty" doc:"Run only what these nodes need"`
		Breaks  []string        `json:"breaks,omitempty" doc:"Pause before these nodes"`
	}
}

type getRunInput struct {
	RunPath
	At int64 `query:"at" minimum:"0" doc:"The run as it was after this event; 0 is now"`
	ValueBound
}

// runDetails is a run without the messages of its contexts.
type runDetails struct {
	*app.RunDetails
	Contexts  []ContextRow         `json:"contexts"`
	Labels    []string             `json:"labels"`
	Truncated []app.TruncatedValue `json:"truncated" doc:"The values that are larger than maxValue"`
}

// ContextRow is a context of a run.
type ContextRow struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Label    string `json:"label"`
	Parent   string `json:"parent"`
	Model    string `json:"model"`
	Messages int    `json:"messages" doc:"How many there are; GET .../contexts/ID returns them"`
	At       int    `json:"at" doc:"How many of them were its parent's when it was forked; 0 without a parent"`
	Used     int    `json:"used,omitempty" doc:"In timelines: tokens of the last model call with the context and of its answer"`
	Window   int    `json:"window,omitempty" doc:"In timelines: the window of the model of that call in tokens, if it is known"`
}

func (s *Server) registerRuns() {
	tags := []string{"runs"}
	register(s, operation{
		id: "startRun", method: http.MethodPost, path: "/v1/runs", scope: Start, status: http.StatusCreated, tags: tags, summary: "Start a run",
		description: "The run is durable when the answer comes. It continues if the client disconnects.",
	}, startRun)
	register(s, operation{id: "getRun", method: http.MethodGet, path: "/v1/runs/{run}", scope: Read, tags: tags, summary: "Get a run, now or as it was at an event"}, getRun)
}

func startRun(c *call, in *startInput) (*created[app.RunReport], error) {
	f, err := c.flow(in.Body.Flow)
	if err != nil {
		return nil, err
	}
	start := weir.Start{User: c.who.user, Origin: c.origin("api"), Targets: in.Body.Targets, Breaks: in.Body.Breaks}
	if start.Inputs, err = objectOf("body.inputs", in.Body.Inputs); err != nil {
		return nil, err
	}
	if start.State, err = objectOf("body.state", in.Body.State); err != nil {
		return nil, err
	}
	if start.Model, err = c.modelOr(in.Body.Model, f.Model); err != nil {
		return nil, err
	}
	if err := c.about("flow", f.Name); err != nil {
		return nil, err
	}
	id, err := c.once("startRun", in.Key, in.Body, func(id string) (string, error) {
		start.ID = id
		used := &usedFiles{call: c}
		var err error
		if start.Inputs, err = used.inputs(f.Flow, start.Inputs); err != nil {
			return "", err
		}
		if _, err = c.app.Start(context.WithoutCancel(c), f.Flow, start); err != nil {
			return "", err
		}
		return id, used.usedBy(id)
	})
	if err != nil {
		return nil, err
	}
	report, err := c.report(id, in.Wait)
	return &created[app.RunReport]{"/v1/runs/" + id, report}, err
}

// modelOr checks a model that a client names; without one it is the flow's. A client may
// not name a script: that is a file of the server.
func (s *Server) modelOr(asked, flows string) (string, error) {
	if asked == "" {
		if strings.HasPrefix(flows, app.ScriptProvider+"/") {
			return flows, nil // its path is that of the flow's folder
		}
		return "", nil
	}
	provider, _, _ := strings.Cut(asked, "/")
	if provider == app.ScriptProvider || !slices.Contains(s.app.Providers, provider) {
		return "", newProblem(http.StatusUnprocessableEntity, engine.CodeModelUnknownProvider, "there is no model provider "+quoted(provider))
	}
	return asked, nil
}

// report waits up to some seconds until a run rests, and reports it.
func (c *call) report(id string, wait int) (app.RunReport, error) {
	return c.reportOf(nil, id, wait)
}

// reportOf is report for a run that this request has continued, nil for none. The error is a *runner.Missing if this
// process then found that it lacks something that the run needs.
func (c *call) reportOf(x *weir.Run, id string, wait int) (app.RunReport, error) {
	if x == nil {
		x = c.app.ActiveRun(id)
	}
	if x != nil && wait > 0 {
		ctx, cancel := context.WithTimeout(c, time.Duration(wait)*time.Second)
		defer cancel()
		r, err := x.Wait(c.whileAllowed(ctx))
		if err := c.checkAllowed(); err != nil {
			return app.RunReport{}, err
		}
		if err == nil {
			return c.boundReport(app.RunReportOf(r), ""), nil
		}
		if missing, ok := errors.AsType[*runner.Missing](err); ok {
			return app.RunReport{}, missing
		}
	}
	v, err := c.app.Inspect(c, id, 0)
	if err != nil {
		return app.RunReport{}, err
	}
	return c.boundReport(app.RunReportOf(v.Result()), ""), nil
}

// whileAllowed returns a context for waiting: it also ends when the server drains, and within a heartbeat after the caller's
// token was revoked or the user deactivated.
func (c *call) whileAllowed(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		beat := time.NewTicker(c.options.Heartbeat)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				if !c.mayStillRead() {
					return
				}
			case <-c.draining:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx
}

// checkAllowed refuses the answer to a request that has waited, if its token was revoked or its user deactivated meanwhile.
func (c *call) checkAllowed() error {
	if c.Err() == nil && !c.mayStillRead() {
		return newProblem(http.StatusUnauthorized, engine.CodeUnauthenticated, "the token is not valid any more")
	}
	return nil
}

// untilDrain returns a context that also ends when the server drains.
func (s *Server) untilDrain(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-s.draining:
		case <-ctx.Done():
		}
	}()
	return ctx
}

func getRun(c *call, in *getRunInput) (*body[runDetails], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	v, err := c.app.Inspect(c, in.Run, in.At)
	if err != nil {
		return nil, err
	}
	if v.Run.Start == nil || in.At > v.Run.Events() {
		return nil, notFound("event of run "+in.Run+" with the number", itoa(in.At))
	}
	details, err := app.RunDetailsOf(c, c.app.Store, v)
	if err != nil {
		return nil, err
	}
	out := runDetails{RunDetails: details, Contexts: []ContextRow{}}
	out.Truncated = c.boundDetails(details, in.At, in.MaxValue)
	if out.Labels, err = c.labelsOf(in.Run); err != nil {
		return nil, err
	}
	for _, x := range details.Contexts {
		out.Contexts = append(out.Contexts, ContextRow{ID: x.ID, Kind: x.Kind, Label: x.Label, Parent: x.Parent, Model: x.Model, Messages: len(x.Messages), At: v.Contexts[x.ID].At})
	}
	return bodyOf(out), nil
}
