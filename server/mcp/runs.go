package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/store"
)

// Names of the tools for runs. No flow has a name with this prefix.
const (
	runPrefix   = "weir_"
	listTool    = runPrefix + "list_runs"
	showTool    = runPrefix + "show_run"
	explainTool = runPrefix + "explain_run"
	answerTool  = runPrefix + "answer_run"
	forkTool    = runPrefix + "fork_run"
)

// runArguments are those of the tools for runs.
type runArguments struct {
	Run       string          `json:"run"`
	Flow      string          `json:"flow"`
	Status    string          `json:"status"`
	Limit     int             `json:"limit"`
	Question  string          `json:"question"`
	Value     json.RawMessage `json:"value"`
	From      string          `json:"from"`
	Inputs    json.RawMessage `json:"inputs"`
	StateJSON json.RawMessage `json:"state"`
}

func object(required []any, members map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": members, "required": required, "additionalProperties": false}
}

func text(about string) map[string]any {
	return map[string]any{"type": "string", "description": about}
}

// addRunTools adds the tools that read runs, and those that change them where the caller may.
func addRunTools(m *sdk.Server, c *server.Caller, o Options) {
	run := text("The id of the run")
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true}
	add := func(name, about string, hints *sdk.ToolAnnotations, schema map[string]any, do func(ctx context.Context, a *runArguments) (any, error)) {
		m.AddTool(&sdk.Tool{Name: name, Description: about, InputSchema: schema, Annotations: hints}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return runTool(ctx, c, r, do)
		})
	}
	add(listTool, "Lists runs, newest first.", reads, object([]any{}, map[string]any{
		"flow": text("Only runs of the flow with this name"), "status": text("Only runs with this status: running, paused, completed, failed, cancelled"),
		"limit": map[string]any{"type": "integer", "minimum": 1, "maximum": 100, "description": "How many, 20 by default"},
	}), func(ctx context.Context, a *runArguments) (any, error) { return listRuns(ctx, c, a) })
	add(showTool, "Shows a run: status, inputs, outputs, open questions, and each node with its result or error.", reads, object([]any{"run"}, map[string]any{"run": run}),
		func(ctx context.Context, a *runArguments) (any, error) { return showRun(ctx, c, a.Run) })
	add(explainTool, "Explains what each node of a run did, step by step, with inputs, model calls, tool calls and errors.", reads, object([]any{"run"}, map[string]any{"run": run}),
		func(_ context.Context, a *runArguments) (any, error) { return explainRun(c, a.Run) })
	if c.Can(server.Answer) {
		add(answerTool, "Answers an open question of a run.", nil, object([]any{"run", "question", "value"}, map[string]any{
			"run": run, "question": text("The id of the question"), "value": map[string]any{"description": "The answer; it must fit the schema of the question"},
		}), func(ctx context.Context, a *runArguments) (any, error) { return answerRun(ctx, c, a) })
	}
	if o.Fork && c.Can(server.Start) {
		add(forkTool, "Starts a run that shares the past of another and continues with other inputs or state.", nil, object([]any{"run"}, map[string]any{
			"run": run, "from": text("The path of the node that starts again"),
			"inputs": map[string]any{"type": "object", "description": "Inputs that differ"},
			"state":  map[string]any{"type": "object", "description": "Values that are written to the state where the past ends"},
		}), func(ctx context.Context, a *runArguments) (any, error) { return forkRun(ctx, c, a) })
	}
}

// runTool reads the arguments of a call and returns the result as JSON.
func runTool(ctx context.Context, c *server.Caller, r *sdk.CallToolRequest, do func(ctx context.Context, a *runArguments) (any, error)) (*sdk.CallToolResult, error) {
	var a runArguments
	if len(r.Params.Arguments) > 0 {
		if err := json.Unmarshal(r.Params.Arguments, &a); err != nil {
			return failed(c, "", server.InvalidRequest("arguments", err.Error())), nil
		}
	}
	v, err := do(ctx, &a)
	if err != nil {
		return failed(c, "", err), nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}, StructuredContent: json.RawMessage(b)}, nil
}

func listRuns(ctx context.Context, c *server.Caller, a *runArguments) (any, error) {
	f := store.Filter{Flow: a.Flow, User: c.ListedUser(), Limit: min(max(a.Limit, 0), 100), Roots: true}
	if f.Limit == 0 {
		f.Limit = 20
	}
	if a.Status != "" {
		status, err := app.StatusNamed(a.Status)
		if err != nil {
			return nil, server.InvalidRequest("arguments.status", err.Error())
		}
		f.Status = []engine.Status{status}
	}
	list, err := c.App().Runs(ctx, f)
	if err != nil {
		return nil, err
	}
	rows := make([]app.RunRow, 0, len(list))
	for i := range list {
		rows = append(rows, app.RunRowOf(&list[i]))
	}
	return map[string]any{"runs": rows}, nil
}

func showRun(ctx context.Context, c *server.Caller, id string) (any, error) {
	if _, err := c.Run(id); err != nil {
		return nil, err
	}
	v, err := c.App().Inspect(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	return app.RunDetailsOf(ctx, c.App().Store, v)
}

func explainRun(c *server.Caller, id string) (any, error) {
	work, err := c.Chain(id)
	return map[string]any{"work": work}, err
}

func answerRun(ctx context.Context, c *server.Caller, a *runArguments) (any, error) {
	if _, err := c.Run(a.Run); err != nil {
		return nil, err
	}
	v, err := engine.ParseValue(a.Value)
	if err != nil {
		return nil, server.InvalidRequest("arguments.value", err.Error())
	}
	if _, err := c.App().Answer(context.WithoutCancel(ctx), a.Run, a.Question, v, c.By()); err != nil {
		return nil, err
	}
	t := &flowTool{c: c}
	r, err := t.wait(ctx, a.Run)
	return app.RunReportOf(r), err
}

func forkRun(ctx context.Context, c *server.Caller, a *runArguments) (any, error) {
	row, err := c.Run(a.Run)
	if err != nil {
		return nil, err
	}
	if row.User != c.User() && c.Token() != "" { // the fork would carry the other user's name
		return nil, server.NotFound("run of your own", a.Run)
	}
	if err := c.RequireFlow(row.Flow); err != nil {
		return nil, err
	}
	o := weir.ForkOptions{ID: c.NewID(), From: a.From, By: c.By(), Origin: c.Origin("mcp")}
	if o.Inputs, err = objectOf("inputs", a.Inputs); err != nil {
		return nil, err
	}
	if o.State, err = objectOf("state", a.StateJSON); err != nil {
		return nil, err
	}
	if _, _, err := c.App().Fork(context.WithoutCancel(ctx), a.Run, o); err != nil {
		return nil, err
	}
	r, err := (&flowTool{c: c}).wait(ctx, o.ID)
	return app.RunReportOf(r), err
}

func objectOf(name string, raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := engine.ParseValue(raw)
	o, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, server.InvalidRequest("arguments."+name, "expected an object")
	}
	return o, nil
}
