package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sort"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
)

// Options of the tools.
type Options struct {
	// Version is the version of the program, as clients see it.
	Version string
	// Fork offers the tool weir_fork_run, which starts runs; without it the tools for runs only
	// read.
	Fork bool
}

// questionTime is how long the answer to a question is accepted.
const questionTime = 24 * time.Hour

// stateless is the first revision without sessions, in which a question is a result.
const stateless = "2026-07-28"

type callerKey struct{}

// Register adds the endpoint /mcp to a server. Each request has a server of the protocol of
// its own, with the tools that its caller may use.
func Register(s *server.Server, o Options) {
	cache := sdk.NewSchemaCache()
	serverOf := func(r *http.Request) *sdk.Server {
		c, ok := r.Context().Value(callerKey{}).(*server.Caller)
		if !ok {
			return nil
		}
		m, err := newServer(c, o, cache)
		if err != nil {
			return nil
		}
		return m
	}
	options := sdk.StreamableHTTPOptions{
		Stateless:                  true,
		DisableLocalhostProtection: true, // the server checks the host of every request
		MaxRequestBodyBytes:        -1,   // and bounds its body
	}
	streaming := sdk.NewStreamableHTTPHandler(serverOf, &options)
	whole := options
	whole.JSONResponse = true
	single := sdk.NewStreamableHTTPHandler(serverOf, &whole)
	s.Handle("POST /mcp", server.Read, server.Face{}, func(w http.ResponseWriter, r *http.Request, c *server.Caller) {
		c.Wait(w)
		h := single
		if wantsProgress(r) {
			h = streaming
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// ServeStdio answers one client on standard input and output until it ends the input.
func ServeStdio(ctx context.Context, s *server.Server, o Options) error {
	m, err := newServer(s.Owner(ctx), o, sdk.NewSchemaCache())
	if err != nil {
		return err
	}
	return m.Run(ctx, &sdk.StdioTransport{})
}

// newServer returns a server with the tools of a caller.
func newServer(c *server.Caller, o Options, cache *sdk.SchemaCache) (*sdk.Server, error) {
	m := sdk.NewServer(&sdk.Implementation{Name: "weir", Title: "Weir", Version: o.Version}, &sdk.ServerOptions{
		Instructions: "Each flow is a tool that runs it. weir_* tools read the record of runs.", SchemaCache: cache,
		// Prompts and resources are declared because the SDK answers their lists, with none.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
	})
	flows, err := c.Flows()
	if err != nil {
		return nil, err
	}
	if c.Can(server.Start) {
		addFlows(m, c, flows)
	}
	addRunTools(m, c, o)
	return m, nil
}

// addFlows adds the flows as tools. No flow takes the name of another: a second flow with the
// same tool name gets a suffix that follows from its own name, flows of files come first.
func addFlows(m *sdk.Server, c *server.Caller, flows []*app.ServedFlow) {
	sort.SliceStable(flows, func(i, j int) bool { return flows[i].File != "" && flows[j].File == "" })
	used := map[string]bool{}
	for _, f := range flows {
		name := toolName(f.Name)
		for used[name] {
			sum := sha256.Sum256([]byte(f.Name))
			name += "_" + hex.EncodeToString(sum[:4])
		}
		used[name] = true
		t := &sdk.Tool{Name: name, Title: f.Name, Description: describe(f), InputSchema: weir.FlowParameters(f.Flow)}
		if err := addTool(m, t, (&flowTool{f, c}).call); err != nil {
			c.Logger().WarnContext(c.Context(), "a flow is not offered as a tool", "flow", f.Name, "error", err)
		}
	}
}

// addTool adds a tool. The SDK panics on schemas that it refuses, and schemas come from flows.
func addTool(m *sdk.Server, t *sdk.Tool, call sdk.ToolHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("tool %s: %v", t.Name, r)
		}
	}()
	m.AddTool(t, call)
	return nil
}

func describe(f *app.ServedFlow) string {
	if f.Description != "" {
		return f.Description
	}
	return "Runs the flow " + f.Name + "."
}

// toolName returns the name of a flow as a tool: letters of tool names, and not one of the
// tools for runs.
func toolName(flow string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9_.-]`).ReplaceAllString(flow, "_")
	if len(name) > 100 {
		name = name[:100]
	}
	if len(name) >= len(runPrefix) && name[:len(runPrefix)] == runPrefix {
		name = "flow_" + name
	}
	return name
}

// flowTool runs a flow for a caller.
type flowTool struct {
	flow *app.ServedFlow
	c    *server.Caller
}

// call starts a run, or answers the questions of one that an earlier call started, and waits
// until it rests.
func (t *flowTool) call(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var run string
	var err error
	var before int64 // events of the run
	if r.Params.RequestState != "" {
		run, before, err = t.answer(r)
	} else {
		run, err = t.start(r.Params.Arguments)
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, refused
	}
	if err != nil {
		return failed(t.c, "", err), nil
	}
	t.progress(ctx, r, run, before)
	result, err := t.wait(ctx, run)
	if err != nil {
		return failed(t.c, run, err), nil
	}
	return t.result(r, result)
}

// start starts a run with the arguments as its inputs.
func (t *flowTool) start(arguments json.RawMessage) (string, error) {
	start := weir.Start{ID: t.c.NewID(), User: t.c.User(), Origin: t.c.Origin("mcp")}
	if len(arguments) > 0 {
		v, err := engine.ParseValue(arguments)
		if err != nil {
			return "", server.InvalidRequest("arguments", err.Error())
		}
		inputs, ok := v.(map[string]any)
		if !ok && v != nil {
			return "", server.InvalidRequest("arguments", "expected an object")
		}
		start.Inputs = inputs
	}
	var err error
	if start.Model, err = t.c.Model(t.flow); err != nil {
		return "", err
	}
	_, err = t.c.App().Start(context.WithoutCancel(t.c.Context()), t.flow.Flow, start)
	return start.ID, err
}

// wait waits until a run rests.
func (t *flowTool) wait(ctx context.Context, run string) (weir.Result, error) {
	if x := t.c.App().ActiveRun(run); x != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ctx = t.c.WhileAllowed(ctx)
		r, err := x.Wait(ctx)
		if err != nil && t.c.IsDraining() {
			err = server.Unavailable()
		}
		if err == nil || ctx.Err() != nil {
			return r, err
		}
	}
	v, err := t.c.App().Inspect(ctx, run, 0)
	if err != nil {
		return weir.Result{}, err
	}
	return v.Result(), nil
}

// result returns what a client gets of a run that rests.
func (t *flowTool) result(r *sdk.CallToolRequest, x weir.Result) (*sdk.CallToolResult, error) {
	out := &sdk.CallToolResult{Meta: sdk.Meta{"weir/run": x.Run, "weir/status": x.Status.String()}}
	switch x.Status { //nolint:exhaustive // all others have failed
	case engine.Completed:
		out.StructuredContent = app.OrEmpty(x.Outputs)
		text, err := json.Marshal(out.StructuredContent)
		if err != nil {
			return nil, err
		}
		out.Content = []sdk.Content{&sdk.TextContent{Text: string(text)}}
		if len(x.Outputs) == 1 {
			if s, ok := x.Outputs[0].Value.(string); ok {
				out.Content = []sdk.Content{&sdk.TextContent{Text: s}}
			}
		}
		return out, nil
	case engine.Paused:
		if questions, ids := questionsOf(x.Interrupts); len(questions) > 0 && canAsk(r) && t.c.Can(server.Answer) {
			out.InputRequests, out.RequestState = questions, t.sign(r, x, ids)
			return out, nil
		}
		out.Content = []sdk.Content{&sdk.TextContent{Text: waitingText(x)}}
		return out, nil
	}
	var err error = x.Error
	if x.Error == nil {
		err = errors.New("the run was " + x.Status.String())
	}
	return failed(t.c, x.Run, err), nil
}

// failed returns the result of a call that failed: a model reads it and may correct the call.
func failed(c *server.Caller, run string, err error) *sdk.CallToolResult {
	p := c.ProblemOf(err)
	text := p.Code + ": " + p.Detail
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	out := &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
	if run != "" {
		out.Meta = sdk.Meta{"weir/run": run}
	}
	return out
}
