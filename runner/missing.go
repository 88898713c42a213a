package runner

import (
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// MissingTypes returns the error that a run cannot continue because its flow does not load
// with the node types of this process.
func MissingTypes(run string, invalid *flow.Invalid) *Missing {
	m := &Missing{Run: run}
	for i := range invalid.Problems {
		// Each flow that the run uses reports what it lacks.
		if message := invalid.Problems[i].Message; !slices.Contains(m.What, message) {
			m.What = append(m.What, message)
		}
	}
	return m
}

// missingHere returns what this process lacks for an attempt that was executing when its process stopped, if that is
// why it fails here: a tool or provider that a value names does not exist, although the attempt had come further. It
// returns nil for a name that no process knew: then the attempt has executed an effect since, or has come as far as its
// recorded effects.
func (a *attempt) missingHere(err error) *Missing {
	if err == nil || !a.interrupted {
		return nil
	}
	e := a.toError(err)
	if e.Code != engine.CodeToolUnknown && e.Code != engine.CodeModelUnknownProvider {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.executed || a.recorded > 0 && a.replayed >= a.recorded {
		return nil
	}
	return &Missing{Run: a.m.run.ID, What: []string{"node " + a.Path + ": " + e.Message}}
}

// stopForMissing stops the execution where it is, because this process lacks something that an attempt needs: the run
// continues in a process that has it. Effects of other attempts in flight may end.
func (x *Execution) stopForMissing(a *attempt, missing *Missing) {
	delete(x.m.active, a.Path)
	if x.missing == nil {
		x.missing = missing
	}
	x.state.drain()
	x.stopAttempts(true)
}

// markInterrupted notes that the attempt was executing when the process that executed it stopped.
func (a *attempt) markInterrupted() {
	a.interrupted, a.recorded = true, len(a.effects)
	for key := range a.startedEffects {
		if a.effects[key] == nil {
			a.recorded++
		}
	}
}
