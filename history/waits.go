package history

import (
	"strings"

	"github.com/weir-run/weir/engine"
)

// startWaits finds what nodes waited for before their first start, which no event says: a slot, because as many nodes
// ran as the run allows, or a context that another node was writing. It follows the events of a run in order.
// A wait is reported only with its cause: a node that merely started late waited for nothing that is known here.
type startWaits struct {
	plan     *engine.Plan
	parallel int
	floor    int64            // no node was ready earlier: when the run started or was forked
	running  map[string]bool  // nodes that take a slot
	filled   int64            // when all slots were taken last
	ended    map[string]int64 // by path
	opened   map[string]int64 // by scope
	queued   map[string]int64 // by scope: since when an item has waited for its turn
	grants   map[string][]string
	released map[string]int64 // by context: when a node stopped writing it
	expanded map[string]expansion
}

// expansion is when the items of a composite were known, and how many of them may run at once.
type expansion struct {
	at    int64
	limit int
	items int
}

func newStartWaits(plan *engine.Plan) *startWaits {
	return &startWaits{
		plan: plan, parallel: 1, running: make(map[string]bool), ended: make(map[string]int64), opened: make(map[string]int64),
		queued: make(map[string]int64), grants: make(map[string][]string), released: make(map[string]int64), expanded: make(map[string]expansion),
	}
}

// start returns what a node that starts waited for, and since when; "" if for nothing.
func (w *startWaits) start(path string, grants []string, at int64) (kind string, since int64) {
	since, turn := w.readySince(path)
	for _, id := range grants {
		if kind == "" && w.released[id] > since {
			kind = "grant"
		}
	}
	if kind == "" && (turn || w.filled > since) {
		kind = "queue"
	}
	w.resume(path, grants)
	if since >= at || since == 0 {
		return "", 0
	}
	return kind, since
}

// resume notes that a node takes a slot and writes contexts.
func (w *startWaits) resume(path string, grants []string) {
	w.running[path] = true
	if len(grants) > 0 {
		w.grants[path] = grants
	}
}

// readySince returns when the last of what a node follows had ended, 0 if that is not known. turn says that the node is
// the first of an item that waited for its turn.
func (w *startWaits) readySince(path string) (since int64, turn bool) {
	sources, ok := w.plan.Sources(path)
	if !ok {
		return 0, false
	}
	scope, prefix := "", ""
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		scope, prefix = path[:i], path[:i+1]
	}
	if len(sources) == 0 {
		if since, turn = w.queued[scope]; turn {
			return max(since, w.floor), true
		}
	}
	since = max(w.opened[scope], w.floor)
	for _, id := range sources {
		since = max(since, w.ended[prefix+id])
	}
	return since, false
}

// free notes that a node no longer runs.
func (w *startWaits) free(path string, at int64) {
	if !w.running[path] {
		return
	}
	if len(w.running) >= w.parallel {
		w.filled = at
	}
	delete(w.running, path)
	for _, id := range w.grants[path] {
		w.released[id] = at
	}
	delete(w.grants, path)
}

// end notes that a node has ended.
func (w *startWaits) end(path string, at int64) {
	w.free(path, at)
	w.ended[path] = at
}

// run notes what happens to the run as a whole and to scopes.
func (w *startWaits) run(e engine.Event, at int64) {
	switch e := e.(type) {
	case *engine.RunStarted:
		w.parallel, w.floor = max(1, e.Parallel), at
	case *engine.RunForked:
		w.floor = at
		clear(w.running)
		clear(w.grants)
	case *engine.NodeExpanded:
		limit := e.Concurrency
		if e.Race {
			limit = len(e.Items)
		}
		w.expanded[e.Path] = expansion{at, max(1, limit), len(e.Items)}
	case *engine.IterationStarted:
		w.opened[e.Path] = at
		owner, _, _ := cutLast(e.Path, '#')
		if x := w.expanded[owner]; x.items > x.limit {
			w.queued[e.Path] = x.at
		}
	}
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
