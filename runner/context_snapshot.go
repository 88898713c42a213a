package runner

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// snapshotContexts keeps what an attempt that only reads its contexts sees of them: others
// may write them while it works.
func (m *machine) snapshotContexts(path string) {
	if ids, writes := m.run.ContextsOf(path); ids != nil && !writes && m.snapshots[path] == nil {
		m.setContextSnapshots(path, ids)
	}
}

// restoreContextSnapshots is see for a start that is replayed.
func (m *machine) restoreContextSnapshots(path string, forks []engine.ContextChange) error {
	if err := m.applyContextChanges(forks); err != nil {
		return err
	}
	m.snapshotContexts(path)
	return nil
}

// keepContextSnapshots keeps what an attempt saw of its contexts while it waits, or is to be
// tried again, with effects behind it: others may write them from here on, and
// what it asks again must be what it asked. One that has none sees them anew.
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

// dropContextSnapshots forgets what was kept for the nodes inside the one at path, and,
// where it is over, for itself.
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

// contextChanges is what a transaction changes. Where others have written the context
// since the attempt saw it, messages that are there by now are not said again,
// and what holds for positions of the history it saw is left out.
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

// rebase is a change as it comes to a context that others have written meanwhile,
// and the context after it. Marks are for positions of the history as it was:
// they are left as they came, and change nothing.
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

// messagesFrom are what a context has from a position on, for a record of what was
// appended: a store keeps as many messages as the record has.
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
