package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flow/graph"
)

// FlowRow is a flow that the server offers.
type FlowRow struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Fingerprint string         `json:"fingerprint"`
	Model       string         `json:"model"`
	Inputs      map[string]any `json:"inputs" doc:"The JSON Schema of the inputs"`
	// InputTypes tells files and messages from other objects, which a schema does not.
	InputTypes map[string]string `json:"inputTypes" doc:"The declared type of each input: text, number, bool, object, list, message, messages, context, tools, file or any"`
	Source     string            `json:"source" enum:"file,api" doc:"Where it comes from: a file that the server read when it started, or the API"`
	Paused     bool              `json:"paused" doc:"Nothing new starts"`
}

// flowDetails adds the definition.
type flowDetails struct {
	FlowRow
	Flow json.RawMessage `json:"flow" doc:"The normal form of the promoted version; null if none is promoted"`
	Text string          `json:"text" doc:"The file as it was read or put, YAML or JSON; that of the promoted version. Empty if none is promoted, or if the file names other files, so that it cannot be read alone"`
	// Deployed is set for a flow that was put through the API.
	Deployed *app.DeployedFlow `json:"deployed,omitempty" doc:"What there is of a flow that was put through the API"`
}

type flowOutput struct {
	ETag string `header:"ETag" doc:"For If-Match of a change"`
	Body flowDetails
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
	// Layout is set for a valid flow.
	Layout *graph.Layout `json:"layout,omitempty" doc:"The drawing of a valid flow as positions"`
}

func (s *Server) registerFlows() {
	tags := []string{"flows"}
	register(s, operation{id: "listFlows", method: http.MethodGet, path: "/v1/flows", scope: Read, summary: "List flows", tags: tags}, listFlows)
	register(s, operation{id: "getFlow", method: http.MethodGet, path: "/v1/flows/{flow}", scope: Read, summary: "Get a flow with its definition", tags: tags}, getFlow)
	register(s, operation{
		id: "validateFlow", method: http.MethodPost, path: "/v1/flows/validate", scope: Read, reads: true, tags: tags, summary: "Validate a flow",
		description: "Reports all problems with their positions. Nothing is executed or kept.",
	}, validateFlow)
	s.registerDeployed(tags)
}

func flowRowOf(f *app.ServedFlow) FlowRow {
	return FlowRow{
		Name: f.Name, Description: f.Description, Fingerprint: f.Fingerprint(), Model: f.Context.Model, Inputs: weir.FlowParameters(f.Flow),
		InputTypes: inputTypesOf(f.Flow), Source: "file",
	}
}

func inputTypesOf(f *weir.Flow) map[string]string {
	out := make(map[string]string, len(f.Inputs))
	for i := range f.Inputs {
		out[f.Inputs[i].Name] = string(f.Inputs[i].Type)
	}
	return out
}

func listFlows(c *call, _ *struct{}) (*body[flowList], error) {
	out := flowList{Flows: []FlowRow{}}
	for _, name := range c.names {
		out.Flows = append(out.Flows, flowRowOf(c.flows[name]))
	}
	deployed, err := c.deployedFlows()
	if err != nil {
		return nil, err
	}
	for _, d := range deployed {
		if d.Promoted == "" {
			continue
		}
		f, err := c.app.Deployed.Flow(c, d.Promoted)
		if err != nil {
			return nil, err
		}
		out.Flows = append(out.Flows, deployedRow(d, f))
	}
	slices.SortFunc(out.Flows, func(a, b FlowRow) int { return cmp.Compare(a.Name, b.Name) })
	return bodyOf(out), nil
}

func getFlow(c *call, in *flowPath) (*flowOutput, error) {
	if f := c.flows[in.Flow]; f != nil {
		normal, err := f.Normal()
		if err != nil {
			return nil, err
		}
		text, err := c.textAlone(f)
		return &flowOutput{Body: flowDetails{FlowRow: flowRowOf(f), Flow: normal, Text: text}}, err
	}
	d, err := c.deployed(in.Flow)
	if err != nil {
		return nil, err
	}
	return c.flowOutput(d)
}

// textAlone returns the text of the file of a flow if it is the same flow when it is read
// without its folder, as a client reads it; otherwise "".
func (c *call) textAlone(f *app.ServedFlow) (string, error) {
	uses, err := c.usableFlows()
	if err != nil {
		return "", err
	}
	alone, err := c.app.Parse(f.Name, []byte(f.Text), uses...)
	if err != nil || alone.Fingerprint() != f.Fingerprint() {
		return "", nil //nolint:nilerr // it names files: the client has the normal form
	}
	return f.Text, nil
}

func validateFlow(c *call, in *validateInput) (*body[validation], error) {
	uses, err := c.usableFlows()
	if err != nil {
		return nil, err
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
	return bodyOf(validation{Valid: true, Fingerprint: f.Fingerprint(), Problems: []Mistake{}, Layout: graph.LayoutOf(f, c.app.Catalogue())}), nil
}
