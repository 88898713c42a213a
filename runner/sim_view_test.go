package runner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// replica is a run rebuilt from its journal alone, commit by commit, each read
// back from its encoding.
type replica struct {
	m *machine
}

func newReplica(id string, p *Program) *replica {
	return &replica{m: newMachine(id, p, &Services{})}
}

// apply applies a commit and compares with the live run.
func (r *replica) apply(c engine.Commit, live *engine.Run, contexts map[string]convo.Context) error {
	b, err := engine.EncodeEvents(nil, c.Events)
	if err != nil {
		return err
	}
	if c.Events, err = engine.DecodeEvents(b); err != nil {
		return err
	}
	if err := r.m.replay(c); err != nil {
		return err
	}
	a, z := describeRun(live, contexts), describeRun(r.m.run, r.m.contexts)
	if a != z {
		return fmt.Errorf("after commit %d the replay differs from the live run\n%s", c.Seq, firstDifference(a, z))
	}
	return nil
}

func firstDifference(live, replayed string) string {
	a, z := strings.Split(live, "\n"), strings.Split(replayed, "\n")
	for i := range max(len(a), len(z)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(z) {
			y = z[i]
		}
		if x != y {
			return fmt.Sprintf("live:     %s\nreplayed: %s", x, y)
		}
	}
	return ""
}

// describeRun is everything that can be seen of a run, as text.
func describeRun(r *engine.Run, contexts map[string]convo.Context) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("status %s, %d events at %d, usage %+v, cancel %t, cancelling %t", r.Status(), r.Events(), r.Now(), r.Usage(), r.CancelRequested(), r.Cancelling())
	id, at, ok := r.NextTimer()
	line("timer %s %d %t, outputs %s, failure %s", id, at, ok, asJSON(r.Outputs()), asJSON(r.Failure()))
	for _, n := range r.Nodes() {
		line("node %s", asJSON(n))
		describeNode(line, r, n.Path)
	}
	for _, i := range r.Interrupts() {
		line("interrupt %s", asJSON(i))
	}
	line("executing %v", r.Executing())
	for _, k := range r.State().Keys() {
		v, _ := r.State().Get(k)
		line("state %s = %s", k, asJSON(v))
	}
	for _, id := range slices.Sorted(maps.Keys(contexts)) {
		line("context %s: engine says %d: %s", id, r.ContextLength(id), asJSON(contexts[id]))
		if n := contexts[id].History.Len(); n != r.ContextLength(id) {
			line("LENGTH of %s is %d, the engine says %d", id, n, r.ContextLength(id))
		}
	}
	return b.String()
}

func describeNode(line func(string, ...any), r *engine.Run, path string) {
	line("  stuck %t, aborted %t, effects %s, begun %s, answers %s", r.CanOverride(path), r.Aborted(path),
		asJSON(r.Effects(path)), asJSON(r.StartedEffects(path)), asJSON(r.Answers(path)))
	if e, ok := r.Entry(path); ok {
		line("  entry %d %d %t in %s bound %v contexts %v grants %v port %q before %d iterations %s, %d keys", e.Attempt, e.Started,
			e.Resumed, asJSON(e.Inputs), e.Bound, e.Contexts, e.Grants, e.Port, e.EarlierIterations, asJSON(e.Iterations), e.State.Len())
	}
}
