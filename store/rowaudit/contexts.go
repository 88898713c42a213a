package rowaudit

import (
	"maps"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// How a context continues the messages of another one.
const (
	FromLane    = "lane"    // it was forked from a context of the same run
	FromBase    = "base"    // it is the context of the same name in the base of the run
	FromRun     = "run"     // it was forked from a context of another run
	FromSession = "session" // it is the history of the session of which the run is a round
)

// Context is the row of a context.
type Context struct {
	ID int64
	// Start is the position of its first own message, and Source the id of the context that has the messages before, 0 for none.
	Start, Source int64
	// Kind is one of From..., "" for a context without a source.
	Kind string
}

// Lookup finds the contexts that those of a run continue.
type Lookup interface {
	// SessionHistory returns the context with the history of the session of which the run is a round, 0 for none.
	SessionHistory() (int64, error)
	// ContextOfRun returns the context with a name at the end of another run, 0 for none.
	ContextOfRun(run, name string) (int64, error)
	// ContextOfBase returns the context with a name where the run's base ends, 0 for none, and the position after its last message.
	ContextOfBase(name string) (id, end int64, err error)
}

// ExpectedContext returns the row of a context that a change makes; the ID is not set. kept are the rows of the run's contexts by
// name.
func (a *Run) ExpectedContext(ch *engine.ContextChange, kept map[string]Context, l Lookup) (h Context, err error) {
	h.Start = int64(ch.At)
	switch {
	case ch.Session != "":
		h.Kind = FromSession
		h.Source, err = l.SessionHistory()
	case ch.Run != "" && ch.At > 0:
		h.Kind = FromRun
		h.Source, err = l.ContextOfRun(ch.Run, ch.Parent)
	case ch.Run == "" && ch.Parent != "" && ch.At > 0:
		h.Kind = FromLane
		if own, ok := kept[ch.Parent]; ok {
			h.Source = own.ID
		} else if a.Chain.Base != 0 {
			h.Source, _, err = l.ContextOfBase(ch.Parent)
		}
	case ch.Run == "" && !ch.Create && a.Chain.Base != 0:
		id, end, baseErr := l.ContextOfBase(ch.ID)
		if err = baseErr; id != 0 {
			h.Kind, h.Source, h.Start = FromBase, id, end
		}
	}
	if h.Source == 0 {
		h.Kind = ""
	}
	return h, err
}

// CompareContexts compares the rows of the run's contexts with the expected ones, by name. It returns the names of those that are
// alike, sorted.
func (a *Run) CompareContexts(kept, expected map[string]Context) (alike []string) {
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		row, ok := kept[name]
		want := expected[name]
		want.ID = row.ID
		switch {
		case !ok:
			a.AddFinding(store.FoundMissing, "context %s is missing", name)
		case row != want:
			a.AddFinding(store.FoundChanged, "context %s continues from another place than its journal says", name)
		default:
			alike = append(alike, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if _, ok := expected[name]; !ok {
			a.AddFinding(store.FoundAdded, "context %s is in no commit", name)
		}
	}
	return alike
}
