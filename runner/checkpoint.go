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
const checkpointVersion = 2

// minTail is how many events a journal must have grown by before a checkpoint
// is worth its room.
const minTail = 200

// encode makes a checkpoint; nil where the machine is not at rest.
func (m *machine) encode() ([]byte, error) {
	if len(m.staged) > 0 || len(m.active) > 0 || len(m.forks) > 0 || !m.run.Quiet() {
		return nil, nil
	}
	run, err := m.run.Snapshot()
	if err != nil {
		return nil, err
	}
	c := checkpoint{Version: checkpointVersion, First: m.first, Run: run}
	for _, id := range slices.Sorted(maps.Keys(m.book)) {
		x := m.book[id]
		if x.Parent != "" && x.At > 0 {
			return nil, nil // begins with messages of another's
		}
		c.Contexts = append(c.Contexts, contextSnapshot{
			ID: id, Kind: x.Kind, Label: x.Label, Settings: x.Settings,
			Length: x.History.Len(), Epoch: x.Epoch, Output: x.Output, Session: x.Session,
			Marks: x.Marks, Versions: x.History.Versions(),
		})
	}
	return json.Marshal(c)
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
	m.saved = run.Events()
	m.begun(run.Start)
	for _, x := range c.Contexts {
		m.book[x.ID] = convo.Restore(convo.Context{
			ID: x.ID, Kind: x.Kind, Label: x.Label, Settings: x.Settings,
			Epoch: x.Epoch, Output: x.Output, Session: x.Session, Marks: x.Marks,
		}, x.Length, x.Versions, src)
	}
	return m, nil
}

// saveCheckpoint keeps a checkpoint where the journal has outgrown the last.
// One that cannot be kept costs time at the next start and nothing else.
func (l *Local) saveCheckpoint(ctx context.Context, x *Execution) {
	if x.m.run.Events()-x.m.saved < minTail {
		return
	}
	body, err := x.m.encode()
	if err == nil && body != nil {
		err = l.o.Store.SaveCheckpoint(ctx, store.Checkpoint{Run: x.ID, Seq: x.m.seq, Body: body})
	}
	if err != nil {
		l.o.Logger.Warn("checkpoint", "run", x.ID, "error", err)
	}
}

// fromCheckpoint returns the machine of the run's newest checkpoint, or an
// empty one where there is none that can be read.
func (l *Local) fromCheckpoint(ctx context.Context, p *Program, id string) *machine {
	cp, err := l.o.Store.Checkpoint(ctx, id)
	if err == nil {
		var m *machine
		if m, err = restore(id, p, &l.o.Services, cp, &messages{l.o.Store, id}); err == nil {
			return m
		}
	}
	if !errors.Is(err, store.ErrNotFound) {
		l.o.Logger.Warn("checkpoint unreadable; reading the journal", "run", id, "error", err)
	}
	return newMachine(id, p, &l.o.Services)
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
