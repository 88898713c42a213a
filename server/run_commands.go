package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
)

// CommandInput are the parameters of a command on a run.
type CommandInput struct {
	RunPath
	Keyed
	Wait int `query:"wait" minimum:"0" maximum:"60" doc:"Wait up to this many seconds until the run has ended or waits for an answer"`
}

type cancelInput struct {
	CommandInput
	Body struct {
		Reason string `json:"reason,omitempty" maxLength:"2000"`
	}
}

type answerInput struct {
	CommandInput
	Body struct {
		Interrupt string          `json:"interrupt" minLength:"1" doc:"The id of the question, from the member interrupts of the run"`
		Value     json.RawMessage `json:"value" doc:"The answer; it must fit the schema of the question"`
	}
}

type signalInput struct {
	CommandInput
	Body struct {
		Event string          `json:"event" minLength:"1" doc:"The name that a waitEvent node waits for"`
		Value json.RawMessage `json:"value,omitempty"`
	}
}

type overrideInput struct {
	CommandInput
	Body struct {
		Node    string          `json:"node" minLength:"1" doc:"The path of the node; PATH>NODE in a child run"`
		Outputs json.RawMessage `json:"outputs,omitempty" doc:"For complete: an object of the node's outputs"`
	}
}

type budgetInput struct {
	CommandInput
	Body struct {
		Node  string `json:"node" minLength:"1" doc:"The path of the node whose budget was exhausted; PATH>NODE in a child run"`
		Calls int64  `json:"calls,omitempty" minimum:"1" maximum:"1000000" doc:"Model calls to add"`
		// The bounds keep sums far from overflow.
		Tokens int64   `json:"tokens,omitempty" minimum:"1" maximum:"1000000000000" doc:"Tokens to add"`
		Cost   float64 `json:"cost,omitempty" exclusiveMinimum:"0" maximum:"1000000" doc:"US dollars to add"`
	}
}

type forkInput struct {
	CommandInput
	Body forkBody
}

// forkBody says what a fork shares and what is different in it.
type forkBody struct {
	From   string          `json:"from,omitempty" doc:"The path of the node that starts again"`
	At     int64           `json:"at,omitempty" minimum:"0" doc:"The number of the last event that is shared"`
	Inputs json.RawMessage `json:"inputs,omitempty" doc:"An object of inputs that differ"`
	State  json.RawMessage `json:"state,omitempty" doc:"An object that is written to the state where the past ends"`
	Model  string          `json:"model,omitempty" doc:"Replaces the model from there on"`
	Breaks []string        `json:"breaks,omitempty" doc:"Pause before these nodes"`
	Flow   string          `json:"flow,omitempty" doc:"Continue under this flow of the server; without it, under the flow of the run"`
}

type rerunInput struct {
	CommandInput
	Body struct {
		Inputs json.RawMessage `json:"inputs,omitempty" doc:"An object of inputs that differ"`
		Breaks []string        `json:"breaks,omitempty" doc:"Pause before these nodes"`
	}
}

func (s *Server) registerCommands() {
	command := func(id, verb string, scope Scope, summary string) operation {
		return operation{id: id, method: http.MethodPost, path: "/v1/runs/{run}/" + verb, scope: scope, summary: summary, tags: []string{"runs"}}
	}
	register(s, command("cancelRun", "cancel", Start, "Cancel a run"), cancelRun)
	register(s, command("resumeRun", "resume", Start, "Continue a run that no process executes"), resumeRun)
	register(s, command("answerRun", "answer", Answer, "Answer a question of a run"), answerRun)
	register(s, command("signalRun", "signal", Answer, "Bring an outside event to a run"), signalRun)
	for _, op := range []string{"retry", "skip", "complete"} {
		register(s, command(op+"Node", op, Start, map[string]string{
			"retry": "Try a failed node again", "skip": "Skip a stuck node", "complete": "Complete a stuck node with given outputs",
		}[op]), overrideNode(op))
	}
	register(s, command("increaseBudget", "budget", Start, "Add to the budget that a node of a failed run ran out of, and continue"), increaseBudget)
	fork := command("forkRun", "fork", Start, "Start a run that shares the past of another")
	fork.status = http.StatusCreated
	register(s, fork, forkRun)
	rerun := command("rerunRun", "rerun", Start, "Start a run of the same flow with the same inputs")
	rerun.status = http.StatusCreated
	register(s, rerun, rerunRun)
}

// command carries out a command on a run once, and reports the run. Commands outlive the
// request. The journal has the request's id in the commit of its effect, so one that is sent again after the process died
// between the effect and its outcome has no second effect.
func (c *call) command(name string, in *CommandInput, content any, do func(ctx context.Context) (*weir.Run, error)) (*body[app.RunReport], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	var continued *weir.Run
	_, err := c.onceRequest(name+" "+in.Run, in.Key, content, func(r weir.Request) (_ string, err error) {
		ctx := context.WithoutCancel(c)
		if in.Key != "" {
			ctx = weir.WithRequest(ctx, r)
		}
		continued, err = do(ctx)
		return in.Run, err
	})
	if err != nil {
		return nil, err
	}
	report, err := c.reportOf(continued, in.Run, in.Wait)
	return bodyOf(report), err
}

func cancelRun(c *call, in *cancelInput) (*body[app.RunReport], error) {
	return c.command("cancel", &in.CommandInput, in.Body, func(ctx context.Context) (*weir.Run, error) {
		return c.app.Cancel(ctx, in.Run, c.by(), in.Body.Reason)
	})
}

func resumeRun(c *call, in *CommandInput) (*body[app.RunReport], error) {
	return c.command("resume", in, nil, func(ctx context.Context) (*weir.Run, error) { return c.app.Resume(ctx, in.Run) })
}

func answerRun(c *call, in *answerInput) (*body[app.RunReport], error) {
	v, err := valueOf("body.value", in.Body.Value)
	if err != nil {
		return nil, err
	}
	return c.command("answer", &in.CommandInput, in.Body, func(ctx context.Context) (*weir.Run, error) {
		return c.app.Answer(ctx, in.Run, in.Body.Interrupt, v, c.by())
	})
}

func signalRun(c *call, in *signalInput) (*body[app.RunReport], error) {
	v, err := valueOf("body.value", in.Body.Value)
	if err != nil {
		return nil, err
	}
	return c.command("signal", &in.CommandInput, in.Body, func(ctx context.Context) (*weir.Run, error) {
		return c.app.Signal(ctx, in.Run, in.Body.Event, v, c.by())
	})
}

func overrideNode(op string) func(c *call, in *overrideInput) (*body[app.RunReport], error) {
	return func(c *call, in *overrideInput) (*body[app.RunReport], error) {
		outputs, err := objectOf("body.outputs", in.Body.Outputs)
		if err != nil {
			return nil, err
		}
		if op != "complete" && outputs != nil {
			return nil, invalidRequest("body.outputs", op+" takes no outputs; complete does")
		}
		return c.command(op, &in.CommandInput, in.Body, func(ctx context.Context) (*weir.Run, error) {
			return c.app.OverrideNode(ctx, in.Run, op, in.Body.Node, outputs, c.by())
		})
	}
}

func increaseBudget(c *call, in *budgetInput) (*body[app.RunReport], error) {
	more := map[string]any{}
	if in.Body.Calls > 0 {
		more["maxCalls"] = in.Body.Calls
	}
	if in.Body.Tokens > 0 {
		more["maxTokens"] = in.Body.Tokens
	}
	if in.Body.Cost > 0 {
		more["maxCost"] = in.Body.Cost
	}
	if len(more) == 0 {
		return nil, invalidRequest("body", "the request adds nothing: give calls, tokens or cost")
	}
	return c.command("budget", &in.CommandInput, in.Body, func(ctx context.Context) (*weir.Run, error) {
		return c.app.IncreaseBudget(ctx, in.Run, in.Body.Node, more, c.by())
	})
}

func forkRun(c *call, in *forkInput) (*created[app.RunReport], error) {
	o, err := c.forkOptions(in.Run, &in.Body)
	if err != nil {
		return nil, err
	}
	return c.newRun("fork "+in.Run, &in.CommandInput, in.Body, func(ctx context.Context, id string) error {
		o.ID = id
		_, _, err := c.app.Fork(ctx, in.Run, *o)
		return err
	})
}

func rerunRun(c *call, in *rerunInput) (*created[app.RunReport], error) {
	row, err := c.run(in.Run)
	if err != nil {
		return nil, err
	}
	if _, err := c.flowOf(row.Flow); err != nil {
		return nil, err
	}
	inputs, err := objectOf("body.inputs", in.Body.Inputs)
	if err != nil {
		return nil, err
	}
	return c.newRun("rerun "+in.Run, &in.CommandInput, in.Body, func(ctx context.Context, id string) error {
		_, err := c.app.Rerun(ctx, in.Run, weir.Start{ID: id, Origin: c.origin("rerun"), Inputs: inputs, Breaks: in.Body.Breaks})
		return err
	})
}

// newRun makes a run of another once, and reports it.
func (c *call) newRun(route string, in *CommandInput, content any, do func(ctx context.Context, id string) error) (*created[app.RunReport], error) {
	id, err := c.once(route, in.Key, content, func(id string) (string, error) { return id, do(context.WithoutCancel(c), id) })
	if err != nil {
		return nil, err
	}
	report, err := c.report(id, in.Wait)
	return &created[app.RunReport]{"/v1/runs/" + id, report}, err
}
