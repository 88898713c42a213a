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

// checkpoint is a machine between two commits. It has no messages: histories are read from the store when they are
// needed.
type checkpoint struct {
	Version  int               `json:"version"`
	First    int64             `json:"first"`
	Run      json.RawMessage   `json:"run"`
	Contexts []contextSnapshot `json:"contexts,omitempty"`
	// Bases are the contexts as waiting attempts saw them, by path.
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

// checkpointVersion changes when old checkpoints must not be read; new ones are then made from the journal.
const checkpointVersion = 3

// The growth of a journal, in events, after which a checkpoint is written: for a run that leaves memory, and for one
// that stays.
const (
	minCheckpointEvents     = 64
	minLiveCheckpointEvents = 1000
)

// bytesPerEvent is the size of a checkpoint that costs as much as replaying one event.
const bytesPerEvent = 256

// encodeCheckpoint encodes a checkpoint; nil if events are staged or lanes are open.
func (m *machine) encodeCheckpoint() ([]byte, error) {
	if len(m.staged) > 0 || len(m.laneOrigins) > 0 || !m.run.CanSnapshot() {
		return nil, nil
	}
	run, err := m.run.Snapshot()
	if err != nil {
		return nil, err
	}
	c := checkpoint{Version: checkpointVersion, First: m.first, Run: run}
	var whole bool
	if c.Contexts, whole = encodeContexts(m.contexts); !whole {
		return nil, nil
	}
	for path, contexts := range m.snapshots {
		if c.Bases == nil {
			c.Bases = make(map[string][]contextSnapshot, len(m.snapshots))
		}
		if c.Bases[path], whole = encodeContexts(contexts); !whole {
			return nil, nil
		}
	}
	return json.Marshal(c)
}

// encodeContexts encodes contexts by id; whole is false if one starts with messages of another context.
func encodeContexts(contexts map[string]convo.Context) (list []contextSnapshot, whole bool) {
	for _, id := range slices.Sorted(maps.Keys(contexts)) {
		x := contexts[id]
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

// decodeContexts returns the inverse of encodeContexts.
func decodeContexts(list []contextSnapshot, src convo.Source) map[string]convo.Context {
	contexts := make(map[string]convo.Context, len(list))
	for _, x := range list {
		contexts[x.ID] = convo.Restore(convo.Context{
			ID: x.ID, Kind: x.Kind, Label: x.Label, Settings: x.Settings,
			Epoch: x.Epoch, Output: x.Output, Session: x.Session, Marks: x.Marks,
		}, x.Length, x.Versions, src)
	}
	return contexts
}

// restoreMachine creates the machine of a checkpoint.
func restoreMachine(id string, p *Program, s *Services, cp store.Checkpoint, src convo.Source) (*machine, error) {
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
	m.checkpointEvents, m.checkpointSize = run.Events(), int64(len(cp.Body))
	m.vars = &runVars{run: run.ID, start: run.Start}
	m.contexts = decodeContexts(c.Contexts, src)
	for path, list := range c.Bases {
		if m.snapshots == nil {
			m.snapshots = make(map[string]map[string]convo.Context, len(c.Bases))
		}
		m.snapshots[path] = decodeContexts(list, src)
	}
	return m, nil
}

// checkpointDue reports whether the journal has grown enough since the last checkpoint: by a minimum number of
// events, and by more if this run's checkpoints are large, so that their total size stays below a fraction of the
// journal's.
func (m *machine) checkpointDue(least int64) bool {
	return m.run.Events()-m.checkpointEvents >= max(least, m.checkpointSize/bytesPerEvent)
}

// takeCheckpoint encodes a checkpoint of the last commit; ok is false if that is impossible.
func (m *machine) takeCheckpoint() (cp store.Checkpoint, ok bool, err error) {
	body, err := m.encodeCheckpoint()
	if err != nil || body == nil {
		return cp, false, err
	}
	m.checkpointEvents, m.checkpointSize = m.run.Events(), int64(len(body))
	return store.Checkpoint{Run: m.run.ID, Seq: m.seq, Body: body}, true, nil
}

// saveCheckpoint stores a checkpoint of a run that leaves memory. A failure only costs time at the next load.
func (l *Local) saveCheckpoint(ctx context.Context, x *Execution) {
	if !x.m.checkpointDue(minCheckpointEvents) {
		return
	}
	cp, ok, err := x.m.takeCheckpoint()
	if err == nil && ok {
		err = l.store.SaveCheckpoint(ctx, cp)
	}
	if err != nil {
		l.o.Logger.Warn("checkpoint", "run", x.ID, "error", err)
	}
}

// saveLiveCheckpoint stores a checkpoint of a run that stays in memory, so that a crash replays a bounded part of its
// journal. It is written concurrently, one at a time. A store that ends with the process needs none.
func (l *Local) saveLiveCheckpoint(x *Execution) {
	if l.committer.direct || x.m.run.Events() < x.checkpointAfter || !x.m.checkpointDue(minLiveCheckpointEvents) || x.savingCheckpoint.Load() {
		return
	}
	cp, ok, err := x.m.takeCheckpoint()
	if err != nil || !ok {
		x.checkpointAfter = x.m.run.Events() + minLiveCheckpointEvents/4
		if err != nil {
			l.o.Logger.Warn("checkpoint", "run", x.ID, "error", err)
		}
		return
	}
	x.savingCheckpoint.Store(true)
	l.loops.Go(func() {
		defer x.savingCheckpoint.Store(false)
		if err := l.store.SaveCheckpoint(context.WithoutCancel(l.ctx), cp); err != nil {
			l.o.Logger.Warn("checkpoint", "run", cp.Run, "error", err)
		}
	})
}

// loadCheckpoint returns the machine of the run's newest checkpoint, or an empty one if there is none that can be
// read.
func (l *Local) loadCheckpoint(ctx context.Context, p *Program, id string) *machine {
	cp, err := l.store.Checkpoint(ctx, id)
	if err == nil {
		var m *machine
		if m, err = restoreMachine(id, p, &l.o.Services, cp, &messageSource{l.store, id}); err == nil {
			m.attachSession(l.store)
			return m
		}
	}
	if !errors.Is(err, store.ErrNotFound) {
		l.o.Logger.Warn("checkpoint unreadable; reading the journal", "run", id, "error", err)
	}
	return l.machineFromStart(ctx, p, id)
}

// messageSource reads the histories of a run from the store.
type messageSource struct {
	journal store.Journal
	run     string
}

// Load implements convo.Source.
func (s *messageSource) Load(contextID string, from, to int) ([]convo.Message, error) {
	return s.journal.Messages(context.Background(), s.run, contextID, from, to)
}

// FindMessage implements convo.Finder.
func (s *messageSource) FindMessage(contextID, messageID string, n int) (int, error) {
	return s.journal.FindMessage(context.Background(), s.run, contextID, messageID, n)
}
