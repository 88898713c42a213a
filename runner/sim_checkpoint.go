package runner

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// keepCheckpoint takes a checkpoint now and then, from which a crash can restart.
func (s *simulation) keepCheckpoint() error {
	if s.rng.IntN(4) > 0 {
		return nil
	}
	body, err := s.m.encodeCheckpoint()
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if body != nil {
		s.checkpoint = store.Checkpoint{Run: s.id, Seq: s.m.seq, Body: body}
	}
	return nil
}

// reload returns the machine for a restart: from the checkpoint, if there is one, half of the time, otherwise empty.
func (s *simulation) reload() (*machine, error) {
	if s.checkpoint.Body == nil || s.rng.IntN(2) == 0 {
		return newMachine(s.id, s.program, s.services), nil
	}
	m, err := restoreMachine(s.id, s.program, s.services, s.checkpoint, simSource{s.journalOf, s.id})
	if err != nil {
		return nil, fmt.Errorf("restore checkpoint: %w", err)
	}
	return m, nil
}

// simSource reads the histories of a run from the journals of a simulation.
type simSource struct {
	journalOf func(run string) []engine.Commit
	run       string
}

// Load implements convo.Source.
func (j simSource) Load(contextID string, from, to int) ([]convo.Message, error) {
	var all []convo.Message
	for _, c := range j.journalOf(j.run) {
		for _, e := range c.Events {
			for _, ch := range engine.ContextChanges(e) {
				if ch.ID != contextID {
					continue
				}
				more, err := j.appended(&ch)
				if err != nil {
					return nil, err
				}
				all = append(all, more...)
			}
		}
	}
	if to > len(all) {
		return nil, fmt.Errorf("context %s of run %s has %d messages, not %d", contextID, j.run, len(all), to)
	}
	return slices.Clone(all[from:to]), nil
}

// appended returns the messages that a change adds to a context.
func (j simSource) appended(ch *engine.ContextChange) ([]convo.Message, error) {
	before, err := j.base(ch)
	if err != nil || ch.Body == nil { // a lane's own
		return before, err
	}
	body, err := changeOf(ch.Body)
	return append(before, body.Append...), err
}

// base returns the history that a new context continues.
func (j simSource) base(ch *engine.ContextChange) ([]convo.Message, error) {
	if !ch.Create || ch.Parent == "" || ch.At == 0 {
		return nil, nil
	}
	if ch.Run != "" {
		j.run = ch.Run
	}
	return j.Load(ch.Parent, 0, ch.At)
}
