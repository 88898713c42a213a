package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// FlowChange are the parameters of a change of a flow that was put through the API.
type FlowChange struct {
	Flow    string `path:"flow" maxLength:"100" doc:"The name of the flow"`
	IfMatch string `header:"If-Match" maxLength:"100" doc:"The ETag of the flow that was read; the change is refused if the flow was changed since. Required for a flow that exists."`
}

type putFlowInput struct {
	FlowChange
	Body struct {
		Flow    string `json:"flow" minLength:"1" doc:"The text of a flow file, YAML or JSON. It may run the flows of the server by their names, if granted."`
		Promote bool   `json:"promote,omitempty" doc:"New runs and rounds take this version at once"`
		Note    string `json:"note,omitempty" maxLength:"1000" doc:"What is new"`
	}
}

type promoteInput struct {
	FlowChange
	Body struct {
		Version string `json:"version" minLength:"1" doc:"The fingerprint of a version of the flow, an earlier one to roll back"`
	}
}

type pauseInput struct {
	FlowChange
	Body struct {
		Paused bool `json:"paused"`
	}
}

type accessInput struct {
	FlowChange
	Body struct {
		Users []string `json:"users" maxItems:"1000" doc:"Who may use the flow beside its owner; * is everyone"`
	}
}

type grantsInput struct {
	FlowChange
	Body runner.Grants
}

type versionPath struct {
	Flow    string `path:"flow" maxLength:"400" doc:"The name of the flow"`
	Version string `path:"version" maxLength:"200" doc:"The fingerprint of the version"`
}

type versionDetails struct {
	Fingerprint string          `json:"fingerprint"`
	Text        string          `json:"text" doc:"The file as it was put"`
	Flow        json.RawMessage `json:"flow" doc:"The normal form"`
}

func (s *Server) registerDeployed(tags []string) {
	op := func(id, method, path string, scope Scope, summary, description string) operation {
		return operation{id: id, method: method, path: "/v1/flows/{flow}" + path, scope: scope, summary: summary, description: description, tags: tags}
	}
	register(s, op("putFlow", http.MethodPut, "", Start, "Put a version of a flow",
		"The flow is validated and kept, and nothing is executed. Who puts it first owns it. It may use only what was granted to it."), putFlow)
	register(s, op("deleteFlow", http.MethodDelete, "", Start, "Delete a flow that was put", "Its runs stay. What they have not done outside is refused from then on."), deleteFlow)
	register(s, op("getFlowVersion", http.MethodGet, "/versions/{version}", Read, "Get a version of a flow", ""), getFlowVersion)
	register(s, op("promoteFlow", http.MethodPost, "/promote", Start, "Promote a version",
		"Runs and rounds that start from now on take it, also for messages that wait in a queue. Runs and paused rounds keep theirs."), promoteFlow)
	register(s, op("pauseFlow", http.MethodPost, "/pause", Start, "Pause a flow, or end its pause", "While it is paused no run and no session starts, and sessions take no message."), pauseFlow)
	register(s, op("setFlowAccess", http.MethodPut, "/access", Start, "Say who may use a flow", ""), setFlowAccess)
	register(s, op("setFlowGrants", http.MethodPut, "/grants", Admin, "Grant a flow what it may use",
		"Without a grant the flow may use no secret, tool, MCP server, model provider, host, executor or other flow. Withdrawing one stops the next effect that needs it."), setFlowGrants)
}

// deployed returns a flow that was put and that the caller may use.
func (c *call) deployed(name string) (*app.DeployedFlow, error) {
	d, err := c.app.Deployed.Get(c, name)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnsupported) || err == nil && !c.who.all && !d.MayUse(c.who.user) {
		p := notFound("flow", name)
		p.Hint = "GET /v1/flows lists the flows of this server"
		return nil, p
	}
	return d, err
}

// deployedFlows lists the flows that were put and that the caller may use.
func (c *call) deployedFlows() (out []*app.DeployedFlow, err error) {
	const page = 500
	for after := ""; ; {
		list, err := c.app.Deployed.List(c, after, page)
		if errors.Is(err, store.ErrUnsupported) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			after = d.Name
			if c.who.all || d.MayUse(c.who.user) {
				out = append(out, d)
			}
		}
		if len(list) < page {
			return out, nil
		}
	}
}

// flow returns a flow of the server that the caller may start: the promoted version of one
// that was put.
func (c *call) flow(name string) (*app.ServedFlow, error) {
	if f := c.flows[name]; f != nil {
		return f, nil
	}
	d, err := c.deployed(name)
	if err != nil {
		return nil, err
	}
	if d.Paused || d.Promoted == "" {
		why := "is paused"
		if !d.Paused {
			why = "has no promoted version"
		}
		return nil, newProblem(http.StatusConflict, engine.CodeFlowPaused, "the flow "+quoted(name)+" "+why)
	}
	f, err := c.app.Deployed.Flow(c, d.Promoted)
	if err != nil {
		return nil, err
	}
	return &app.ServedFlow{Flow: f, Model: f.Context.Model}, nil
}

// flowOf returns the flow with which a session or run of that flow name continues, nil if the
// server no longer offers it. A flow that was put must be one that the caller may start.
func (c *call) flowOf(name string) (*app.ServedFlow, error) {
	if f := c.flows[name]; f != nil {
		return f, nil
	}
	_, err := c.app.Deployed.Get(c, name)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c.flow(name)
}

// usableFlows returns the flows that a text may run by their names.
func (c *call) usableFlows() (out []*weir.Flow, err error) {
	for _, name := range c.names {
		out = append(out, c.flows[name].Flow)
	}
	deployed, err := c.deployedFlows()
	for _, d := range deployed {
		if d.Promoted == "" {
			continue
		}
		f, err := c.app.Deployed.Flow(c, d.Promoted)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, err
}

func deployedRow(d *app.DeployedFlow, f *weir.Flow) FlowRow {
	row := flowRowOf(&app.ServedFlow{Flow: f})
	row.Source, row.Paused = "api", d.Paused
	return row
}

// flowOutput returns the answer of a request about a flow that was put.
func (c *call) flowOutput(d *app.DeployedFlow) (*flowOutput, error) {
	out := &flowOutput{ETag: etagOf(d), Body: flowDetails{FlowRow: FlowRow{Name: d.Name, InputTypes: map[string]string{}, Source: "api", Paused: d.Paused}, Deployed: d}}
	if d.Promoted == "" {
		return out, nil
	}
	f, err := c.app.Deployed.Flow(c, d.Promoted)
	if err != nil {
		return nil, err
	}
	out.Body.FlowRow = deployedRow(d, f)
	if out.Body.Text, err = c.app.Deployed.Text(c, d.Name, d.Promoted); err != nil {
		return nil, err
	}
	out.Body.Flow, err = f.Normal()
	return out, err
}

func etagOf(d *app.DeployedFlow) string { return `"` + strconv.FormatInt(d.Revision, 10) + `"` }

// flowName is what flows that are put may be called, besides their length of at most
// maxFlowName, so that they fit into paths. A bound in the expression would take memory in
// every process.
var flowName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

const maxFlowName = 100 // bytes

func putFlow(c *call, in *putFlowInput) (*flowOutput, error) {
	if c.flows[in.Flow] != nil {
		return nil, newProblem(http.StatusForbidden, engine.CodeForbidden, "the flow "+quoted(in.Flow)+" comes from a file of the server, and is changed there")
	}
	if len(in.Flow) > maxFlowName || !flowName.MatchString(in.Flow) {
		return nil, invalidRequest("path.flow", "a flow that is put has a name of letters, digits, dots, _ and -")
	}
	n := app.NewFlowVersion{Name: in.Flow, By: c.who.user, Note: in.Body.Note, Text: in.Body.Flow, Promote: in.Body.Promote}
	uses, err := c.usableFlows()
	if err != nil {
		return nil, err
	}
	if n.Flow, err = c.app.Parse(in.Flow, []byte(in.Body.Flow), uses...); err != nil {
		return nil, err
	}
	if n.Flow.Name != in.Flow {
		return nil, invalidRequest("body.flow", "the name of the flow is "+quoted(n.Flow.Name)+", and the path says "+quoted(in.Flow))
	}
	d, err := c.app.Deployed.Get(c, in.Flow)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, err
	case d.Owner != c.who.user && !c.who.all:
		return nil, flowTaken(in.Flow)
	default:
		if err := checkMatch(in.IfMatch, d); err != nil {
			return nil, err
		}
		n.Revision = d.Revision
	}
	d, err = c.app.Deployed.Put(context.WithoutCancel(c), n)
	if errors.Is(err, store.ErrExists) {
		return nil, flowTaken(in.Flow)
	}
	if err != nil {
		return nil, changedFlow(err)
	}
	return c.flowOutput(d)
}

func flowTaken(name string) error {
	p := newProblem(http.StatusConflict, engine.CodeFlowChanged, "there is a flow "+quoted(name)+" of another user, or it was put by another request meanwhile")
	p.Hint = "choose another name; names of flows are unique on a server"
	return p
}

// checkMatch compares the ETag of a request with that of a flow.
func checkMatch(match string, d *app.DeployedFlow) error {
	if match == "" {
		p := newProblem(http.StatusPreconditionRequired, engine.CodeFlowChanged, "the flow exists, and the request does not say which state of it the change is for")
		p.Hint = "send the ETag of GET /v1/flows/NAME as If-Match"
		return p
	}
	list := strings.Split(match, ",")
	if !slices.ContainsFunc(list, func(tag string) bool { return strings.TrimSpace(tag) == etagOf(d) }) {
		return newProblem(http.StatusPreconditionFailed, engine.CodeFlowChanged, "the flow was changed since it was read")
	}
	return nil
}

func changedFlow(err error) error {
	if errors.Is(err, store.ErrChanged) {
		return newProblem(http.StatusPreconditionFailed, engine.CodeFlowChanged, "the flow was changed since it was read")
	}
	return err
}

// changeFlow changes a flow that the caller owns.
func (c *call) changeFlow(in *FlowChange, change func(d *app.DeployedFlow) error) (*flowOutput, error) {
	d, err := c.owned(in)
	if err != nil {
		return nil, err
	}
	if err := change(d); err != nil {
		return nil, err
	}
	if err := c.app.Deployed.Save(context.WithoutCancel(c), d); err != nil {
		return nil, changedFlow(err)
	}
	return c.flowOutput(d)
}

// owned returns a flow that the caller may change, in the state that the request names.
func (c *call) owned(in *FlowChange) (*app.DeployedFlow, error) {
	d, err := c.deployed(in.Flow)
	if err != nil {
		return nil, err
	}
	if d.Owner != c.who.user && !c.who.all {
		return nil, newProblem(http.StatusForbidden, engine.CodeForbidden, "only the owner of a flow and a token with the scope admin can change it")
	}
	return d, checkMatch(in.IfMatch, d)
}

func promoteFlow(c *call, in *promoteInput) (*flowOutput, error) {
	return c.changeFlow(&in.FlowChange, func(d *app.DeployedFlow) error {
		if !slices.ContainsFunc(d.Versions, func(v app.FlowVersion) bool { return v.Fingerprint == in.Body.Version }) {
			return notFound("version of flow "+d.Name, in.Body.Version)
		}
		d.Promote(in.Body.Version, c.by())
		return nil
	})
}

func pauseFlow(c *call, in *pauseInput) (*flowOutput, error) {
	return c.changeFlow(&in.FlowChange, func(d *app.DeployedFlow) error {
		d.Paused = in.Body.Paused
		return nil
	})
}

func setFlowAccess(c *call, in *accessInput) (*flowOutput, error) {
	return c.changeFlow(&in.FlowChange, func(d *app.DeployedFlow) error {
		d.Access = in.Body.Users
		return nil
	})
}

func setFlowGrants(c *call, in *grantsInput) (*flowOutput, error) {
	return c.changeFlow(&in.FlowChange, func(d *app.DeployedFlow) error {
		d.Grants = in.Body
		return nil
	})
}

func deleteFlow(c *call, in *FlowChange) (*struct{}, error) {
	d, err := c.owned(in)
	if err != nil {
		return nil, err
	}
	return nil, changedFlow(c.app.Deployed.Delete(context.WithoutCancel(c), d))
}

func getFlowVersion(c *call, in *versionPath) (*body[versionDetails], error) {
	d, err := c.deployed(in.Flow)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(d.Versions, func(v app.FlowVersion) bool { return v.Fingerprint == in.Version }) {
		return nil, notFound("version of flow "+d.Name, in.Version)
	}
	out := versionDetails{Fingerprint: in.Version}
	if out.Text, err = c.app.Deployed.Text(c, d.Name, in.Version); err != nil {
		return nil, err
	}
	f, err := c.app.Deployed.Flow(c, in.Version)
	if err != nil {
		return nil, err
	}
	out.Flow, err = f.Normal()
	return bodyOf(out), err
}
