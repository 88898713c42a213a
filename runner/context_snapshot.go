package runner

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// snapshotContexts stores the contexts of an attempt that only reads them, because other nodes may write them
// meanwhile.
func (m *machine) snapshotContexts(path string) {
	if ids, writes := m.run.ContextsOf(path); ids != nil && !writes && m.snapshots[path] == nil {
		m.setContextSnapshots(path, ids)
	}
}

// restoreContextSnapshots is snapshotContexts for a replayed start.
func (m *machine) restoreContextSnapshots(path string, forks []engine.ContextChange) error {
	if err := m.applyContextChanges(forks); err != nil {
		return err
	}
	m.snapshotContexts(path)
	return nil
}

// keepContextSnapshots stores the contexts that an attempt with effects saw while it waits or is to be retried: other
// nodes may write them, and repeated requests must be equal. Without stored contexts it sees the current ones.
func (m *machine) keepContextSnapshots(path string) {
	if len(m.run.Effects(path)) == 0 {
		delete(m.snapshots, path)
		return
	}
	if ids, _ := m.run.ContextsOf(path); ids != nil && m.snapshots[path] == nil {
		m.setContextSnapshots(path, ids)
	}
}

func (m *machine) setContextSnapshots(path string, ids []string) {
	if m.snapshots == nil {
		m.snapshots = make(map[string]map[string]convo.Context)
	}
	base := make(map[string]convo.Context, len(ids))
	for _, id := range ids {
		if c, ok := m.contexts[id]; ok {
			base[id] = c
		}
	}
	m.snapshots[path] = base
}

// dropContextSnapshots removes the snapshots of the nodes inside the one at path and, if it has ended, its own.
func (m *machine) dropContextSnapshots(path string, over bool) {
	if len(m.snapshots) == 0 {
		return
	}
	if over {
		delete(m.snapshots, path)
	}
	if m.program.Plan.Find(path).Body == nil {
		return
	}
	for inner := range m.snapshots {
		if strings.HasPrefix(inner, path+"#") {
			delete(m.snapshots, inner)
		}
	}
}

// contextChanges returns the changes of a transaction. If other nodes have written the context since the attempt saw
// it, messages that exist by now are omitted, and so are marks for positions of the older history.
func (m *machine) contextChanges(path string, mgr *convo.Manager) ([]engine.ContextChange, error) {
	base, kept := m.snapshots[path][mgr.ID()]
	now := m.contexts[mgr.ID()]
	stale := kept && (base.History.Len() != now.History.Len() || base.Epoch != now.Epoch || !base.Marks.Equal(now.Marks))
	var list []engine.ContextChange
	for _, ch := range mgr.Changes() {
		adds := len(ch.Append)
		if stale {
			said := adds > 0
			var err error
			if ch, now, err = rebase(ch, now); err != nil {
				return nil, fmt.Errorf("context %s: %w", mgr.ID(), err)
			}
			if adds = len(ch.Append); said && adds == 0 || ch.Marks != nil {
				continue
			}
		}
		list = append(list, engine.ContextChange{ID: mgr.ID(), Adds: adds, Body: &ch})
	}
	return list, nil
}

// rebase returns a change adapted to a context that others have written meanwhile, and the context after it. Marks
// apply to positions of the older history, so the context keeps its own.
func rebase(ch convo.Change, now convo.Context) (convo.Change, convo.Context, error) {
	if ch.Marks != nil {
		return ch, now, nil
	}
	if ch.Session != nil {
		ch.Session = new("")
	}
	after, err := now.Apply(ch)
	if err == nil {
		ch.Append, err = messagesFrom(after, now.History.Len())
	}
	return ch, after, err
}

// messagesFrom returns the messages of a context from a position on, as the record of an append: a store keeps as
// many messages as the record has.
func messagesFrom(c convo.Context, from int) ([]convo.Message, error) {
	var out []convo.Message
	for i := from; i < c.History.Len(); i++ {
		m, err := c.History.Read(i)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
