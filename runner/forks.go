package runner

import (
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
	m.forks[path] = &forkPoint{contexts: maps.Clone(m.book)}
}

// unfork forgets the lanes of a composite that has ended.
func (m *machine) unfork(path string) {
	f := m.forks[path]
	if f == nil {
		return
	}
	for _, id := range f.lanes {
		delete(m.book, id)
	}
	delete(m.forks, path)
}

// forkBase is the context a new one is forked from: for a lane, as it was when
// the composite began to expand.
func (m *machine) forkBase(ch *engine.ContextChange) (convo.Context, bool) {
	if i := strings.LastIndexByte(ch.ID, '@'); i >= 0 {
		owner, _, _ := cutLast(ch.ID[i+1:], '#')
		if f := m.forks[owner]; f != nil {
			f.lanes = append(f.lanes, ch.ID)
			c, ok := f.contexts[ch.Parent]
			return c, ok
		}
	}
	c, ok := m.book[ch.Parent]
	return c, ok
}

// cutLast cuts s at the last sep.
func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
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
	for _, l := range m.run.Lanes(path) {
		ms, err := m.book[l.Lane].Own(l.From)
		if err != nil {
			return nil, err
		}
		if len(ms) > 0 {
			out = append(out, engine.ContextChange{ID: l.Parent, Adds: len(ms), Body: &convo.Change{Append: ms}})
		}
	}
	return out, nil
}
