package history

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// Phase is a time during which a node did one thing: it ran, or it waited. Times are Unix
// milliseconds; To is 0 if the phase has not ended.
type Phase struct {
	// Kind is "queue" (the node could start, and waited for a slot or for the turn of its
	// item), "grant" (it waited for a context that another node was writing), "run", "body"
	// (iterations ran), "pull" (a lazy input was computed), "retry" (the time before another
	// attempt), or the kind of the interrupt that the node waited for: "input", "approval",
	// "event", "timer", "child", "budget", "effect", "break". Queue and grant come before the
	// first start of a node, and are derived: no event has them.
	Kind    string
	From    int64
	To      int64
	Attempt int
}

// PhasesOf returns the phases of each node of a run by path, in order, at most limit for a
// node: later ones extend the last.
func PhasesOf(v *runner.RunView, limit int) map[string][]Phase {
	p := phases{of: make(map[string][]Phase), limit: limit, waits: newStartWaits(v.Run.Plan())}
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
	waits *startWaits
}

func (p *phases) apply(e engine.Event, at int64) {
	switch e := e.(type) {
	case *engine.NodeStarted:
		kind, since := p.waits.start(e.Path, e.Grants, at)
		if kind != "" && len(p.of[e.Path]) == 0 {
			p.begin(e.Path, kind, since, 1)
		}
		p.begin(e.Path, "run", at, max(e.Attempt, 1))
	case *engine.NodeResumed:
		p.waits.resume(e.Path, e.Grants)
		p.begin(e.Path, "run", at, 0)
	case *engine.NodeWaiting:
		kind := "input"
		if len(e.Interrupts) > 0 {
			kind = string(e.Interrupts[0].Kind)
		}
		p.pause(e.Path, kind, at)
	case *engine.NodePulling:
		p.pause(e.Path, "pull", at)
	case *engine.NodeExpanded:
		p.waits.run(e, at)
		p.pause(e.Path, "body", at)
	case *engine.NodeRetrying:
		p.pause(e.Path, "retry", at)
	default:
		p.applyEnd(e, at)
	}
}

func (p *phases) applyEnd(e engine.Event, at int64) {
	switch e := e.(type) {
	case *engine.NodeCompleted:
		p.complete(e.Path, at)
	case *engine.NodeFailed:
		p.complete(e.Path, at)
	case *engine.NodeCancelled:
		p.complete(e.Path, at)
	case *engine.NodeOverridden:
		p.complete(e.Path, at)
	case *engine.NodeErrored:
		p.waits.end(e.Path, at)
	case *engine.NodeSkipped:
		p.waits.end(e.Path, at)
	default:
		p.waits.run(e, at)
	}
}

// pause begins a phase in which a node does not run.
func (p *phases) pause(path, kind string, at int64) {
	p.waits.free(path, at)
	p.begin(path, kind, at, 0)
}

// complete ends the last phase of a node.
func (p *phases) complete(path string, at int64) {
	p.waits.end(path, at)
	p.end(path, at)
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
