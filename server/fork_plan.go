package server

import (
	"net/http"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
)

type planForkInput struct {
	RunPath
	Body forkBody
}

// forkPlan is what a fork comes to.
type forkPlan struct {
	At     int64        `json:"at" doc:"The number of the last shared event"`
	Events int64        `json:"events" doc:"How many events the run has"`
	Shared app.Usage    `json:"shared" doc:"What the shared past has cost; it is not spent again"`
	Nodes  []forkedNode `json:"nodes" doc:"In flow order"`
	Gone   []string     `json:"gone" doc:"Nodes that the flow of the fork does not have"`
}

type forkedNode struct {
	Node   string `json:"node"`
	Type   string `json:"type"`
	Use    string `json:"use" enum:"reused,continues,again,new,ahead" doc:"reused: its outcome is shared; continues: it waits on; again: it starts again; new: the run's flow does not have it; ahead: the run did not reach it"`
	Reason string `json:"reason" doc:"Why it is not reused; empty if it only comes later"`
}

func (s *Server) registerForkPlan() {
	register(s, operation{
		id: "planFork", method: http.MethodPost, path: "/v1/runs/{run}/fork/plan", scope: Read, tags: []string{"runs"},
		reads: true, summary: "Get what a fork would reuse and what would run again", description: "Nothing is started or kept.",
	}, planFork)
}

func planFork(c *call, in *planForkInput) (*body[forkPlan], error) {
	o, err := c.forkOptions(in.Run, &in.Body)
	if err != nil {
		return nil, err
	}
	p, err := c.app.PlanFork(c, in.Run, *o)
	if err != nil {
		return nil, err
	}
	out := forkPlan{At: p.At, Events: p.Events, Shared: app.UsageOf(p.Shared), Nodes: []forkedNode{}, Gone: append([]string{}, p.Removed...)}
	for _, n := range p.Nodes {
		out.Nodes = append(out.Nodes, forkedNode{n.Path, n.Type, string(n.Reuse), n.Reason})
	}
	return bodyOf(out), nil
}

// forkOptions checks what a caller asks of a fork of a run.
func (c *call) forkOptions(run string, in *forkBody) (*weir.ForkOptions, error) {
	row, err := c.run(run)
	if err != nil {
		return nil, err
	}
	if row.User != c.who.user && c.who.user != "" {
		// The fork would carry the other user's name: it inherits the run's.
		return nil, notFound("run of your own", run)
	}
	if _, err := c.flowOf(row.Flow); err != nil {
		return nil, err
	}
	o := weir.ForkOptions{From: in.From, At: in.At, Breaks: in.Breaks, By: c.by(), Origin: c.origin("api")}
	if in.Flow != "" {
		f, err := c.flow(in.Flow)
		if err != nil {
			return nil, err
		}
		o.Flow = f.Flow
	}
	if o.Model, err = c.modelOr(in.Model, ""); err != nil {
		return nil, err
	}
	if o.Inputs, err = objectOf("body.inputs", in.Inputs); err != nil {
		return nil, err
	}
	o.State, err = objectOf("body.state", in.State)
	return &o, err
}
