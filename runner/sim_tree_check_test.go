package runner

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
)

// treeEffectLog stands outside a tree: it knows what its runs asked for, and what
// their journals say.
type treeEffectLog struct {
	life        int
	runs        map[string]*effectLog
	cancelAcked bool // a cancellation of the root was acknowledged
	ended       map[string]bool
	parents     map[string]string // the parents of runs
	nodes       map[string]string // and the nodes of those that run them
	ackedEarly  bool              // the acknowledgement came before the end
	asks        int
	err         error
}

func (l *treeEffectLog) of(run string) *effectLog {
	x := l.runs[run]
	if x == nil {
		x = newEffectLog(run)
		l.runs[run] = x
	}
	x.life = l.life
	return x
}

func (l *treeEffectLog) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

// asked records an effect when it happens.
func (l *treeEffectLog) asked(path string, attempt int, key string) error {
	l.asks++
	run, _, _ := strings.Cut(key, "/")
	x := l.of(run)
	_ = x.asked(path, attempt, key) // it always answers
	if l.err == nil {
		l.err = x.err
	}
	if l.cancelAcked {
		l.fail("%s is asked for after the cancellation of the tree was acknowledged", key)
	}
	for above := l.parents[run]; above != ""; above = l.parents[above] {
		if l.ended[above] {
			l.fail("%s is asked for and the run %s above it has ended", key, above)
		}
	}
	return nil
}

func (l *treeEffectLog) acknowledged() { l.cancelAcked, l.ackedEarly = true, !l.ended["sim"] }

// committed records every commit when it is durable.
func (l *treeEffectLog) committed(c engine.Commit, r *engine.Run) error {
	x := l.of(c.Run)
	if l.ended[c.Run] {
		l.fail("run %s goes on after its end", c.Run)
	}
	x.committed(c)
	if l.err == nil {
		l.err = x.err
	}
	for _, e := range c.Events {
		switch e := e.(type) {
		case *engine.RunStarted:
			l.parents[c.Run] = e.Parent
			l.nodes[c.Run], _, _ = strings.Cut(e.Node, ":")
			if l.cancelAcked {
				l.fail("run %s begins after the cancellation of the tree was acknowledged", c.Run)
			}
		case *engine.EffectStarted:
			if l.cancelAcked {
				l.fail("effect %s of run %s begins after the cancellation of the tree was acknowledged", e.Key, c.Run)
			}
		case *engine.NodeFailed:
			l.nodeEnded(c.Run, e.Path, e)
		case *engine.NodeCompleted:
			l.nodeEnded(c.Run, e.Path, e)
		case *engine.RunCompleted, *engine.RunFailed, *engine.RunCancelled:
			l.runEnded(c.Run, e)
		}
	}
	if r.Status().Ended() != l.ended[c.Run] {
		l.fail("run %s is %s after a commit that ends with %s", c.Run, r.Status(), c.Events[len(c.Events)-1].Kind())
	}
	return nil
}

// runEnded notes that a run has ended: all below it have, before.
func (l *treeEffectLog) runEnded(run string, e engine.Event) {
	l.ended[run] = true
	for below, parent := range l.parents {
		if parent == run && !l.ended[below] {
			l.fail("%s of run %s comes before the end of run %s below it", e.Kind(), run, below)
		}
	}
}

// nodeEnded notes that a node has ended: all runs of it and of what is in it have,
// before.
func (l *treeEffectLog) nodeEnded(run, path string, e engine.Event) {
	for below, node := range l.nodes {
		inside := node == path || strings.HasPrefix(node, path+"#")
		if inside && l.parents[below] == run && !l.ended[below] {
			l.fail("%s of %s in run %s comes before the end of run %s in it", e.Kind(), path, run, below)
		}
	}
}

// check holds the journals at the end to what was promised.
func (l *treeEffectLog) check(report SimTreeReport) error {
	var own engine.Usage
	for i := range report.Runs {
		r := &report.Runs[i]
		if !r.Status.Ended() {
			return fmt.Errorf("run %s is left %s", r.Run, r.Status)
		}
		n := int64(0)
		var last engine.Event
		for j, c := range r.Commits {
			if c.Seq != int64(j+1) || c.First != n+1 {
				return fmt.Errorf("run %s: commit %d has number %d and begins with event %d after %d", r.Run, j+1, c.Seq, c.First, n)
			}
			n += int64(len(c.Events))
			for _, e := range c.Events {
				last = e
				if done, ok := e.(*engine.EffectCompleted); ok && done.Usage != nil {
					own = own.Add(*done.Usage)
				}
			}
		}
		if want := "run." + r.Status.String(); last.Kind() != want {
			return fmt.Errorf("run %s is %s and its last event is %s", r.Run, r.Status, last.Kind())
		}
	}
	if root := report.Runs[0].Usage; root != own {
		return fmt.Errorf("the root has spent %+v, and all runs together %+v", root, own)
	}
	return nil
}
