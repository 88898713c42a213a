package runner

import "github.com/weir-run/weir/flow"

// Flow implements node.Flows.
func (a *attempt) Flow(ref string) *flow.Flow { return a.m.program.Flow.UsedFlow(ref) }
