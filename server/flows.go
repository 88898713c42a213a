package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow"
)

// FlowRow is a flow that the server offers.
type FlowRow struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Fingerprint string         `json:"fingerprint"`
	Model       string         `json:"model"`
	Inputs      map[string]any `json:"inputs" doc:"The JSON Schema of the inputs"`
}

// flowDetails adds the definition.
type flowDetails struct {
	FlowRow
	Flow json.RawMessage `json:"flow" doc:"The normal form"`
}

type flowList struct {
	Flows []FlowRow `json:"flows"`
}

type flowPath struct {
	Flow string `path:"flow" maxLength:"400" doc:"The name of the flow"`
}

type validateInput struct {
	Body struct {
		Flow string `json:"flow" minLength:"1" doc:"The text of a flow file, YAML or JSON. It may use the flows of the server by their names."`
		Name string `json:"name,omitempty" doc:"What positions call the file"`
	}
}

type validation struct {
	Valid       bool      `json:"valid"`
	Fingerprint string    `json:"fingerprint" doc:"Empty if the flow is not valid"`
	Problems    []Mistake `json:"problems"`
}

func (s *Server) registerFlows() {
	tags := []string{"flows"}
	register(s, operation{id: "listFlows", method: http.MethodGet, path: "/v1/flows", scope: Read, summary: "List flows", tags: tags}, listFlows)
	register(s, operation{id: "getFlow", method: http.MethodGet, path: "/v1/flows/{flow}", scope: Read, summary: "Get a flow with its definition", tags: tags}, getFlow)
	register(s, operation{
		id: "validateFlow", method: http.MethodPost, path: "/v1/flows/validate", scope: Read, tags: tags, summary: "Validate a flow",
		description: "Reports all problems with their positions. Nothing is executed or kept.",
	}, validateFlow)
}

// flow returns a flow that the server offers.
func (s *Server) flow(name string) (*app.ServedFlow, error) {
	if f := s.flows[name]; f != nil {
		return f, nil
	}
	p := notFound("flow", name)
	p.Hint = "GET /v1/flows lists the flows of this server"
	return nil, p
}

func flowRowOf(f *app.ServedFlow) FlowRow {
	return FlowRow{Name: f.Name, Description: f.Description, Fingerprint: f.Fingerprint(), Model: f.Context.Model, Inputs: weir.FlowParameters(f.Flow)}
}

func listFlows(c *call, _ *struct{}) (*body[flowList], error) {
	out := flowList{Flows: []FlowRow{}}
	for _, name := range c.names {
		out.Flows = append(out.Flows, flowRowOf(c.flows[name]))
	}
	return bodyOf(out), nil
}

func getFlow(c *call, in *flowPath) (*body[flowDetails], error) {
	f, err := c.flow(in.Flow)
	if err != nil {
		return nil, err
	}
	normal, err := f.Normal()
	if err != nil {
		return nil, err
	}
	return bodyOf(flowDetails{flowRowOf(f), normal}), nil
}

func validateFlow(c *call, in *validateInput) (*body[validation], error) {
	var uses []*weir.Flow
	for _, name := range c.names {
		uses = append(uses, c.flows[name].Flow)
	}
	name := in.Body.Name
	if name == "" {
		name = "flow"
	}
	f, err := c.app.Parse(name, []byte(in.Body.Flow), uses...)
	if invalid, ok := errors.AsType[*flow.Invalid](err); ok {
		return bodyOf(validation{Problems: mistakesOf(invalid)}), nil
	}
	if err != nil {
		return nil, err
	}
	return bodyOf(validation{Valid: true, Fingerprint: f.Fingerprint(), Problems: []Mistake{}}), nil
}
