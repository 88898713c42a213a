package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// checkpoint is a machine between two commits. It holds no message: histories
// are read from the store as they are needed.
type checkpoint struct {
	Version  int               `json:"version"`
	First    int64             `json:"first"`
	Run      json.RawMessage   `json:"run"`
	Contexts []contextSnapshot `json:"contexts,omitempty"`
	// Bases are contexts as waiting attempts saw them, by path.
	Bases map[string][]contextSnapshot `json:"bases,omitempty"`
}

type contextSnapshot struct {
	ID       string         `json:"id"`
	Kind     convo.Kind     `json:"kind"`
	Label    string         `json:"label,omitempty"`
	Settings convo.Settings `json:"settings"`
	Length   int            `json:"n"`
	Epoch    int            `json:"epoch,omitempty"`
	Output   string         `json:"output,omitempty"`
	Session  string         `json:"session,omitempty"`
	Marks    convo.Marks    `json:"marks,omitzero"`
	Versions bool           `json:"versions,omitempty"`
}

// checkpointVersion changes when old checkpoints must not be read; they are
// then made again from the journal.
const checkpointVersion = 3

// How many events a journal must have grown by before a checkpoint is worth its
// room: of a run that leaves memory, and of one that stays.
const (
	minTail     = 64
	minLiveTail = 1000
)

// bytesAnEvent is how much of a checkpoint costs what replaying an event does.
const bytesAnEvent = 256

// encode makes a checkpoint; nil where something is staged or lanes are open.
func (m *machine) encode() ([]byte, error) {
	if len(m.staged) > 0 || len(m.forks) > 0 || !m.run.Quiet() {
		return nil, nil
	}
	run, err := m.run.Snapshot()
	if err != nil {
		return nil, err
	}
	c := checkpoint{Version: checkpointVersion, First: m.first, Run: run}
	var whole bool
	if c.Contexts, whole = snapshots(m.book); !whole {
		return nil, nil
	}
	for path, book := range m.bases {
		if c.Bases == nil {
			c.Bases = make(map[string][]contextSnapshot, len(m.bases))
		}
		if c.Bases[path], whole = snapshots(book); !whole {
			return nil, nil
		}
	}
	return json.Marshal(c)
}

// snapshots are the contexts of a book by id; whole is false where one begins
// with messages of another's.
func snapshots(book map[string]convo.Context) (list []contextSnapshot, whole bool) {
	for _, id := range slices.Sorted(maps.Keys(book)) {
		x := book[id]
		if x.Parent != "" && x.At > 0 {
			return nil, false
		}
		list = append(list, contextSnapshot{
			ID: id, Kind: x.Kind, Label: x.Label, Settings: x.Settings,
			Length: x.History.Len(), Epoch: x.Epoch, Output: x.Output, Session: x.Session,
			Marks: x.Marks, Versions: x.History.Versions(),
		})
	}
	return list, true
}

// bookOf is the other direction of snapshots.
func bookOf(list []contextSnapshot, src convo.Source) map[string]convo.Context {
	book := make(map[string]convo.Context, len(list))
	for _, x := range list {
		book[x.ID] = convo.Restore(convo.Context{
			ID: x.ID, Kind: x.Kind, Label: x.Label, Settings: x.Settings,
			Epoch: x.Epoch, Output: x.Output, Session: x.Session, Marks: x.Marks,
		}, x.Length, x.Versions, src)
	}
	return book
}

// restore makes the machine that a checkpoint was taken of.
func restore(id string, p *Program, s *Services, cp store.Checkpoint, src convo.Source) (*machine, error) {
	var c checkpoint
	if err := json.Unmarshal(cp.Body, &c); err != nil {
		return nil, err
	}
	if c.Version != checkpointVersion {
		return nil, fmt.Errorf("checkpoint version %d", c.Version)
	}
	run, err := engine.Restore(id, p.Plan, c.Run)
	if err != nil {
		return nil, err
	}
	m := newMachine(id, p, s)
	m.run, m.seq, m.first = run, cp.Seq, c.First
	m.saved, m.savedSize = run.Events(), int64(len(cp.Body))
	m.begun(run.Start)
	m.book = bookOf(c.Contexts, src)
	for path, list := range c.Bases {
		if m.bases == nil {
			m.bases = make(map[string]map[string]convo.Context, len(c.Bases))
		}
		m.bases[path] = bookOf(list, src)
	}
	return m, nil
}

// outgrown reports whether the journal has grown since the last checkpoint by
// so much that another is worth it: by at least some events, and by more the
// larger checkpoints of this run are, so that all of them together cost no more
// than a part of the journal does.
func (m *machine) outgrown(least int64) bool {
	return m.run.Events()-m.saved >= max(least, m.savedSize/bytesAnEvent)
}

// snapshot makes a checkpoint that is as of the last commit and notes it; ok is
// false where there is none to be had.
func (m *machine) snapshot() (cp store.Checkpoint, ok bool, err error) {
	body, err := m.encode()
	if err != nil || body == nil {
		return cp, false, err
	}
	m.saved, m.savedSize = m.run.Events(), int64(len(body))
	return store.Checkpoint{Run: m.run.ID, Seq: m.seq, Body: body}, true, nil
}

// saveCheckpoint keeps a checkpoint of a run that leaves memory. One that cannot
// be kept costs time at the next start and nothing else.
func (l *Local) saveCheckpoint(ctx context.Context, x *Execution) {
	if !x.m.outgrown(minTail) {
		return
	}
	cp, ok, err := x.m.snapshot()
	if err == nil && ok {
		err = l.o.Store.SaveCheckpoint(ctx, cp)
	}
	if err != nil {
		l.o.Logger.Warn("checkpoint", "run", x.ID, "error", err)
	}
}

// keepCheckpoint keeps one of a run that stays in memory, so that a crash
// replays no more than a bounded part of its journal. It is written beside the
// run, one at a time. A store that is gone with the process needs none.
func (l *Local) keepCheckpoint(x *Execution) {
	if l.committer.direct || x.m.run.Events() < x.retry || !x.m.outgrown(minLiveTail) || x.saving.Load() {
		return
	}
	cp, ok, err := x.m.snapshot()
	if err != nil || !ok {
		x.retry = x.m.run.Events() + minLiveTail/4
		if err != nil {
			l.o.Logger.Warn("checkpoint", "run", x.ID, "error", err)
		}
		return
	}
	x.saving.Store(true)
	l.loops.Go(func() {
		defer x.saving.Store(false)
		if err := l.o.Store.SaveCheckpoint(context.WithoutCancel(l.ctx), cp); err != nil {
			l.o.Logger.Warn("checkpoint", "run", cp.Run, "error", err)
		}
	})
}

// fromCheckpoint returns the machine of the run's newest checkpoint, or an
// empty one where there is none that can be read.
func (l *Local) fromCheckpoint(ctx context.Context, p *Program, id string) *machine {
	cp, err := l.o.Store.Checkpoint(ctx, id)
	if err == nil {
		var m *machine
		if m, err = restore(id, p, &l.o.Services, cp, &messages{l.o.Store, id}); err == nil {
			m.restored(l.o.Store)
			return m
		}
	}
	if !errors.Is(err, store.ErrNotFound) {
		l.o.Logger.Warn("checkpoint unreadable; reading the journal", "run", id, "error", err)
	}
	return l.fromStart(ctx, p, id)
}

// messages reads the histories of a run from the store.
type messages struct {
	journal Journal
	run     string
}

// Load implements convo.Source.
func (s *messages) Load(contextID string, from, to int) ([]convo.Message, error) {
	return s.journal.Messages(context.Background(), s.run, contextID, from, to)
}

// FindMessage implements convo.Finder.
func (s *messages) FindMessage(contextID, messageID string, n int) (int, error) {
	return s.journal.FindMessage(context.Background(), s.run, contextID, messageID, n)
}
