package runner

import (
	"fmt"
	"maps"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// forkPoint holds the contexts as they were when a composite began to expand
// into lanes, and the lanes made from them since.
type forkPoint struct {
	contexts map[string]convo.Context
	lanes    []string
}

// fork notes where the contexts stand, for the lanes of a composite.
func (m *machine) fork(path string) {
	if m.forks == nil {
		m.forks = make(map[string]*forkPoint)
	}
	f := &forkPoint{contexts: maps.Clone(m.book)}
	if before := m.forks[path]; before != nil {
		f.lanes = before.lanes
	}
	m.forks[path] = f
}

// unfork forgets the lanes of a composite that has ended, and those of
// composites inside it.
func (m *machine) unfork(path string) {
	if len(m.forks) == 0 || m.program.Plan.Find(path).Body == nil {
		return
	}
	for owner, f := range m.forks {
		if owner != path && !strings.HasPrefix(owner, path+"#") {
			continue
		}
		for _, id := range f.lanes {
			delete(m.book, id)
		}
		delete(m.forks, owner)
	}
}

// fromFork makes a context that is forked from another; at position 0, of one that
// had messages, it begins without any.
func (m *machine) fromFork(id, parent string, at int) error {
	c, ok := m.forkBase(id, parent)
	if !ok {
		return fmt.Errorf("is forked from %s, which is not there", parent)
	}
	if f := m.forks[laneOwner(id)]; f != nil {
		f.lanes = append(f.lanes, id)
	}
	if at == 0 {
		c = c.Empty()
	}
	m.book[id] = c.Fork(id)
	return nil
}

// forkBase is the context that one called id is forked from: for a lane, as it
// was when the composite began to expand.
func (m *machine) forkBase(id, parent string) (convo.Context, bool) {
	c, ok := m.book[parent]
	f := m.forks[laneOwner(id)]
	if f == nil {
		return c, ok
	}
	if then, there := f.contexts[parent]; there {
		return then, true
	}
	// An outer lane's own, made since: it was then what it is forked from.
	if !ok || c.Parent == "" {
		return c, false
	}
	outer, ok := m.forkBase(parent, c.Parent)
	if c.At == 0 {
		outer = outer.Empty()
	}
	return outer.Fork(parent), ok
}

// laneOwner is the path of the composite whose lane a context belongs to, ""
// for contexts outside any.
func laneOwner(id string) string {
	at := strings.LastIndexByte(id, '@')
	lane := strings.LastIndexByte(id, '#')
	if at < 0 || lane < at {
		return ""
	}
	return id[at+1 : lane]
}

// changeOf returns what a context change says, decoded where it came from a
// journal.
func changeOf(body any) (convo.Change, error) {
	switch b := body.(type) {
	case *convo.Change:
		return *b, nil
	case convo.Change:
		return b, nil
	}
	return decodeChange(body)
}

// laneCommits are the context changes with which a composite's lanes end: their
// messages, in index order, at the end of what they were forked from.
func (m *machine) laneCommits(path string) ([]engine.ContextChange, error) {
	var out []engine.ContextChange
	grown := make(map[string]convo.Context)
	for _, l := range m.run.Lanes(path) {
		ms, err := m.book[l.Lane].Own(l.From)
		if err != nil {
			return nil, err
		}
		if len(ms) == 0 {
			continue
		}
		before, ok := grown[l.Parent]
		if !ok {
			before = m.book[l.Parent]
		}
		change := convo.Change{Append: ms}
		after, err := before.Apply(change)
		if err != nil {
			return nil, err
		}
		grown[l.Parent] = after
		// Fewer than ms where two lanes said the same message.
		if change.Append, err = positions(after, before.History.Len()); err != nil {
			return nil, err
		}
		if n := len(change.Append); n > 0 {
			out = append(out, engine.ContextChange{ID: l.Parent, Adds: n, Body: &change})
		}
	}
	return out, nil
}
