package server

import (
	"errors"
	"net/http"
	"slices"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/store"
)

type flowDiffInput struct {
	Flow string `path:"flow" maxLength:"400" doc:"The name of the flow"`
	From string `query:"from" required:"true" maxLength:"200" doc:"The fingerprint of a version"`
	To   string `query:"to" maxLength:"200" doc:"The fingerprint of another version; without it, the one that new runs take"`
}

type flowDiff struct {
	From    string           `json:"from"`
	To      string           `json:"to"`
	Same    bool             `json:"same"`
	Changes []app.FlowChange `json:"changes" doc:"Values of the normal forms that differ. Without a name, one of the versions lacks the node."`
	Moves   []app.FlowMove   `json:"moves" doc:"What of the changes is a move: nodes that have another id, and settings that another node has under the same name"`
}

func (s *Server) registerFlowDiff() {
	register(s, operation{
		id: "diffFlow", method: http.MethodGet, path: "/v1/flows/{flow}/diff", scope: Read, tags: []string{"flows"}, summary: "Compare two versions of a flow by structure",
		description: "A version of a flow that was put is one in its list. Of a flow of a file, it is any with which a run was started under this name.",
	}, diffFlow)
}

// version returns a version of a flow that the caller may use; "" is the one that new runs
// take.
func (c *call) version(name, fingerprint string) (*weir.Flow, error) {
	missing := notFound("version of flow "+name, fingerprint)
	if f := c.flows[name]; f != nil {
		if fingerprint == "" || fingerprint == f.Fingerprint() {
			return f.Flow, nil
		}
		// A version that a client has put is that client's, whatever its name.
		if of, err := c.app.Deployed.NameOf(c, fingerprint); err != nil || of != "" {
			return nil, errors.Join(err, missing)
		}
		old, err := c.app.FlowByFingerprint(c, fingerprint)
		if errors.Is(err, store.ErrNotFound) || err == nil && old.Name != name {
			return nil, missing
		}
		return old, err
	}
	d, err := c.deployed(name)
	if err != nil {
		return nil, err
	}
	if fingerprint == "" {
		fingerprint = d.Promoted
	}
	if !slices.ContainsFunc(d.Versions, func(v app.FlowVersion) bool { return v.Fingerprint == fingerprint }) {
		return nil, missing
	}
	return c.app.Deployed.Flow(c, fingerprint)
}

func diffFlow(c *call, in *flowDiffInput) (*body[flowDiff], error) {
	from, err := c.version(in.Flow, in.From)
	if err != nil {
		return nil, err
	}
	to, err := c.version(in.Flow, in.To)
	if err != nil {
		return nil, err
	}
	list, err := history.CompareFlows(from, to)
	if err != nil {
		return nil, err
	}
	return bodyOf(flowDiff{from.Fingerprint(), to.Fingerprint(), len(list) == 0, app.FlowChangesOf(list), app.FlowMovesOf(history.MovesOf(list))}), nil
}
