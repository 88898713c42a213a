package runner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// liveText is the live output of effects that have not completed, guarded by the hub's lock.
type liveText map[liveKey]*effectOutput

// liveKey identifies an effect of the tree; effect is "" for output of a node's function itself.
type liveKey struct{ run, path, effect string }

// effectOutput is the output of an effect so far.
type effectOutput struct {
	attempt int
	interim bool
	// lane is the outermost composite in whose lane the node runs, "" for none. Once completed
	// is set, the node has completed, and the output is void only if that composite fails,
	// because its lane is then discarded.
	lane                            string
	completed                       bool
	text, reasoning, stdout, stderr strings.Builder
	calls                           []convo.Call // the tool calls that it announced
	wait                            *llm.Chunk   // by which the call was announced that made earlier output void; nil for none
}

func (s *effectOutput) size() int {
	return s.text.Len() + s.reasoning.Len() + s.stdout.Len() + s.stderr.Len()
}

func (s *effectOutput) chunk() *llm.Chunk {
	return &llm.Chunk{Text: s.text.String(), Reasoning: s.reasoning.String(), Stdout: s.stdout.String(), Stderr: s.stderr.String()}
}

// add adds a piece of live output and marks it. It returns items to be published before it: the retraction of earlier
// output if the call is repeated.
func (l liveText) add(it *Item) (before []Item) {
	k := liveKey{it.Run, it.Path, it.Effect}
	s := l[k]
	if s != nil && (s.attempt != it.Attempt || it.Chunk.Wait > 0) {
		before = s.retract(before, k, it.At)
		s = nil
	}
	if s == nil {
		s = &effectOutput{attempt: it.Attempt, interim: !mayBeAnswer(it.Effect), lane: it.lane}
		if it.Chunk.Wait > 0 {
			s.wait = it.Chunk
		}
		l[k] = s
	}
	if it.Chunk.Call != nil {
		s.calls = append(s.calls, *it.Chunk.Call)
	}
	if it.Chunk.Call != nil && !s.interim {
		s.interim = true
		before = append(before, Item{Run: it.Run, At: it.At, Path: it.Path, Attempt: it.Attempt, Effect: it.Effect, Interim: true})
	}
	s.text.WriteString(it.Chunk.Text)
	s.reasoning.WriteString(it.Chunk.Reasoning)
	s.stdout.WriteString(it.Chunk.Stdout)
	s.stderr.WriteString(it.Chunk.Stderr)
	it.Interim = s.interim
	return before
}

// mayBeAnswer reports whether the output of an effect may be the answer of its node: that of a model's turn may, that
// of a summary or a queue may not.
func mayBeAnswer(effect string) bool {
	_, name := engine.SplitEffectKey(effect)
	name, _, _ = strings.Cut(name, "#")
	return effect == "" || name == "model"
}

func (s *effectOutput) retract(out []Item, k liveKey, at int64) []Item {
	if s.size() == 0 {
		return out
	}
	return append(out, Item{Run: k.run, At: at, Path: k.path, Attempt: s.attempt, Effect: k.effect, Retracted: true})
}

// applyEvent removes the output that an event completes or voids, and returns the retractions to be published before
// the event.
func (l liveText) applyEvent(run string, e engine.Event, at int64) []Item {
	switch e := e.(type) {
	case *engine.EffectCompleted:
		path, _ := engine.SplitEffectKey(e.Key)
		k := liveKey{run, path, e.Key}
		s := l[k]
		delete(l, k)
		if s != nil && e.Error != nil {
			return s.retract(nil, k, at)
		}
		return nil
	case *engine.NodeCompleted:
		l.completeNode(run, e.Path)
		return l.retractMatching(at, func(k liveKey) bool { return k.run == run && k.path == e.Path && !l[k].completed })
	case *engine.IterationCancelled: // the branch of a race that lost
		return l.retractMatching(at, func(k liveKey) bool { return k.run == run && strings.HasPrefix(k.path, e.Path+"/") })
	case *engine.RunCompleted, *engine.RunFailed, *engine.RunCancelled:
		return l.retractMatching(at, func(k liveKey) bool { return k.run == run })
	case *engine.NodeStarted, *engine.NodeResumed, *engine.NodeErrored, *engine.NodeFailed, *engine.NodeCancelled,
		*engine.NodeWaiting, *engine.NodePulling, *engine.NodeExpanded, *engine.NodeRetrying, *engine.NodeOverridden:
		path := engine.EventPath(e)
		failed := isFailure(e)
		return l.retractMatching(at, func(k liveKey) bool {
			o := l[k]
			return k.run == run && (k.path == path && !o.completed || failed && o.completed && o.lane == path)
		})
	}
	return nil
}

// isFailure reports whether an event ends an attempt of a node without a result, so that
// the lanes of a composite are discarded.
func isFailure(e engine.Event) bool {
	switch e.(type) {
	case *engine.NodeErrored, *engine.NodeFailed, *engine.NodeCancelled, *engine.NodeRetrying, *engine.NodeOverridden:
		return true
	}
	return false
}

// completeNode forgets the output of a node's function, because it is final, with
// the output of its lanes. In a lane it is final when the outermost composite with lanes
// completes.
func (l liveText) completeNode(run, path string) {
	own := liveKey{run, path, ""}
	if s := l[own]; s != nil && s.lane != "" {
		s.completed = true
	} else {
		delete(l, own)
	}
	for k, o := range l { // order: each entry is considered alone.
		if k.run == run && o.completed && o.lane == path {
			delete(l, k)
		}
	}
}

// laneOf returns the path of the outermost composite in whose lane a node runs, "" for none.
func laneOf(plan *engine.Plan, path string) string {
	for i, c := range path {
		if c != '#' {
			continue
		}
		n := plan.Find(path[:i])
		if n == nil {
			return ""
		}
		count, _ := n.Def.With["concurrency"].(int64)
		if n.Spec.NeedsLanes(n.Def.With) || n.Def.Isolation == isolationFork || n.Def.Isolation == "fresh" || n.Def.Isolation == "" && count > 1 {
			return path[:i]
		}
	}
	return ""
}

// retractMatching retracts the output of the effects with matching keys.
func (l liveText) retractMatching(at int64, of func(liveKey) bool) (out []Item) {
	for _, k := range l.keys() {
		if of(k) {
			out = l[k].retract(out, k, at)
			delete(l, k)
		}
	}
	return out
}

func (l liveText) keys() []liveKey {
	keys := make([]liveKey, 0, len(l))
	for k := range l { // order: sorted below.
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b liveKey) int {
		return cmp.Or(strings.Compare(a.run, b.run), strings.Compare(a.path, b.path), strings.Compare(a.effect, b.effect))
	})
	return keys
}

// snapshots returns the output so far of each effect, by key.
func (l liveText) snapshots(at int64) []Item {
	var out []Item
	for _, k := range l.keys() {
		if s := l[k]; s.size() > 0 {
			out = append(out, Item{
				Run: k.run, At: at, Path: k.path, Attempt: s.attempt, Effect: k.effect, Interim: s.interim, Snapshot: true, Chunk: s.chunk(),
			})
		}
	}
	return out
}
