package runner

import (
	"fmt"
	"maps"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// laneOrigin has the contexts at the time when a composite started to expand into lanes, and the lanes created since.
type laneOrigin struct {
	contexts map[string]convo.Context
	lanes    []string
}

// openLanes stores the state of the contexts for the lanes of a composite.
func (m *machine) openLanes(path string) {
	if m.laneOrigins == nil {
		m.laneOrigins = make(map[string]*laneOrigin)
	}
	f := &laneOrigin{contexts: maps.Clone(m.contexts)}
	if before := m.laneOrigins[path]; before != nil {
		f.lanes = before.lanes
	}
	m.laneOrigins[path] = f
}

// closeLanes removes the lanes of a composite that has ended, and those of composites inside it.
func (m *machine) closeLanes(path string) {
	if len(m.laneOrigins) == 0 || m.program.Plan.Find(path).Body == nil {
		return
	}
	for owner, f := range m.laneOrigins {
		if owner != path && !strings.HasPrefix(owner, path+"#") {
			continue
		}
		for _, id := range f.lanes {
			delete(m.contexts, id)
		}
		delete(m.laneOrigins, owner)
	}
}

// addForkedContext creates a context that is forked from another; at position 0 of one that had messages it starts
// empty.
func (m *machine) addForkedContext(id, parent string, at int) error {
	c, ok := m.forkSource(id, parent)
	if !ok {
		return fmt.Errorf("is forked from %s, which is not there", parent)
	}
	if f := m.laneOrigins[laneOwner(id)]; f != nil {
		f.lanes = append(f.lanes, id)
	}
	if at == 0 {
		c = c.WithoutMessages()
	}
	m.contexts[id] = c.Fork(id)
	return nil
}

// forkSource returns the context from which the one called id is forked: for a lane, as it was when the composite
// started to expand.
func (m *machine) forkSource(id, parent string) (convo.Context, bool) {
	c, ok := m.contexts[parent]
	f := m.laneOrigins[laneOwner(id)]
	if f == nil {
		return c, ok
	}
	if then, there := f.contexts[parent]; there {
		return then, true
	}
	// An outer lane that was created since: it then equalled its source.
	if !ok || c.Parent == "" {
		return c, false
	}
	outer, ok := m.forkSource(parent, c.Parent)
	if c.At == 0 {
		outer = outer.WithoutMessages()
	}
	return outer.Fork(parent), ok
}

// laneOwner returns the path of the composite to whose lane a context belongs, "" for contexts outside of lanes.
func laneOwner(id string) string {
	at := strings.LastIndexByte(id, '@')
	lane := strings.LastIndexByte(id, '#')
	if at < 0 || lane < at {
		return ""
	}
	return id[at+1 : lane]
}

// changeOf returns a context change, decoded if it came from a journal.
func changeOf(body any) (convo.Change, error) {
	switch b := body.(type) {
	case *convo.Change:
		return *b, nil
	case convo.Change:
		return b, nil
	}
	return decodeChange(body)
}

// laneCommits returns the context changes that commit a composite's lanes: their messages, in index order, at the end
// of the context from which they were forked.
func (m *machine) laneCommits(path string) ([]engine.ContextChange, error) {
	var out []engine.ContextChange
	grown := make(map[string]convo.Context)
	for _, l := range m.run.Lanes(path) {
		ms, err := m.contexts[l.Lane].AddedSince(l.From)
		if err != nil {
			return nil, err
		}
		if len(ms) == 0 {
			continue
		}
		before, ok := grown[l.Parent]
		if !ok {
			before = m.contexts[l.Parent]
		}
		change := convo.Change{Append: ms}
		after, err := before.Apply(change)
		if err != nil {
			return nil, err
		}
		grown[l.Parent] = after
		// Fewer than ms if two lanes added the same message.
		if change.Append, err = messagesFrom(after, before.History.Len()); err != nil {
			return nil, err
		}
		if n := len(change.Append); n > 0 {
			out = append(out, engine.ContextChange{ID: l.Parent, Adds: n, Body: &change})
		}
	}
	return out, nil
}
