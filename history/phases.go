package history

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// Phase is a time during which a node did one thing: it ran, or it waited. Times are Unix
// milliseconds; To is 0 if the phase has not ended.
type Phase struct {
	// Kind is "run", "body" (iterations ran), "pull" (a lazy input was computed), "retry"
	// (the time before another attempt), or the kind of the interrupt that the node waited
	// for: "input", "approval", "event", "timer", "child", "budget", "effect", "break".
	Kind    string
	From    int64
	To      int64
	Attempt int
}

// PhasesOf returns the phases of each node of a run by path, in order, at most limit for a
// node: later ones extend the last.
func PhasesOf(v *runner.RunView, limit int) map[string][]Phase {
	p := phases{of: make(map[string][]Phase), limit: limit}
	for _, c := range v.Commits {
		for i, e := range c.Events {
			p.apply(e, c.When(i))
		}
	}
	return p.of
}

type phases struct {
	of    map[string][]Phase
	limit int
}

func (p *phases) apply(e engine.Event, at int64) {
	switch e := e.(type) {
	case *engine.NodeStarted:
		p.begin(e.Path, "run", at, max(e.Attempt, 1))
	case *engine.NodeResumed:
		p.begin(e.Path, "run", at, 0)
	case *engine.NodeWaiting:
		kind := "input"
		if len(e.Interrupts) > 0 {
			kind = string(e.Interrupts[0].Kind)
		}
		p.begin(e.Path, kind, at, 0)
	case *engine.NodePulling:
		p.begin(e.Path, "pull", at, 0)
	case *engine.NodeExpanded:
		p.begin(e.Path, "body", at, 0)
	case *engine.NodeRetrying:
		p.begin(e.Path, "retry", at, 0)
	case *engine.NodeCompleted:
		p.end(e.Path, at)
	case *engine.NodeFailed:
		p.end(e.Path, at)
	case *engine.NodeCancelled:
		p.end(e.Path, at)
	case *engine.NodeOverridden:
		p.end(e.Path, at)
	}
}

// begin ends the last phase of a node and adds another; attempt 0 is that of the last one.
func (p *phases) begin(path, kind string, at int64, attempt int) {
	p.end(path, at)
	list := p.of[path]
	if n := len(list); n > 0 && attempt == 0 {
		attempt = list[n-1].Attempt
	}
	if len(list) == p.limit {
		list[len(list)-1].To = 0
		return
	}
	p.of[path] = append(list, Phase{Kind: kind, From: at, Attempt: attempt})
}

func (p *phases) end(path string, at int64) {
	if list := p.of[path]; len(list) > 0 && list[len(list)-1].To == 0 {
		list[len(list)-1].To = at
	}
}
