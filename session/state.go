package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// StateEdit changes the state of a session by hand.
type StateEdit struct {
	// Set gives keys new values. Reset removes the values of keys, so that the next round
	// starts with their initial values; All resets all keys first.
	Set   map[string]any
	Reset []string
	All   bool
	// Flow declares the keys that are set; nil is the flow of the last round.
	Flow *flow.Flow
	// By is who changes it.
	By string
}

// State returns the values that the session keeps between its rounds, sorted by key.
func (s *Session) State(ctx context.Context) ([]store.StateValue, error) {
	return s.m.State(ctx, s.ID)
}

// EditState is Manager.EditState with the session's flow.
func (s *Session) EditState(ctx context.Context, e StateEdit) error {
	if e.Flow == nil {
		e.Flow = s.flow
	}
	return s.m.EditState(ctx, s.ID, e)
}

// State is Session.State by id.
func (m *Manager) State(ctx context.Context, id string) ([]store.StateValue, error) {
	return m.store.SessionState(ctx, id)
}

// EditState changes the state of a session, all or nothing. The error has the code
// input_invalid if a key is not declared, a value does not fit its key or the state would be
// too large, and is store.ErrBusy if a round has not ended. A failed round that was started
// before the change cannot be retried after it.
func (m *Manager) EditState(ctx context.Context, id string, e StateEdit) error {
	row, err := m.store.Session(ctx, id)
	if err != nil {
		return err
	}
	kept, err := m.store.SessionState(ctx, id)
	if err != nil {
		return err
	}
	changes, err := m.stateChanges(ctx, &row, kept, &e)
	if err != nil || len(changes) == 0 {
		return err
	}
	err = m.store.SetSessionState(ctx, store.StateEdit{Session: id, Changes: changes, By: e.By, At: time.Now()})
	if errors.Is(err, store.ErrBusy) {
		return &busyStateError{err: err, run: row.Holder}
	}
	return err
}

// busyStateError says that a round has not ended, and what to do.
type busyStateError struct {
	err error
	run string
}

// Error names the round.
func (e *busyStateError) Error() string {
	return fmt.Sprintf("%v: wait for the round, or cancel it with `%s`", e.err, engine.CommandLine("cancel", cmp.Or(e.run, "RUN")))
}

// Unwrap returns the cause.
func (e *busyStateError) Unwrap() error { return e.err }

// stateChanges checks an edit and returns its changes, sorted by key.
func (m *Manager) stateChanges(ctx context.Context, row *store.Session, kept []store.StateValue, e *StateEdit) ([]engine.SessionChange, error) {
	sizes := map[string]engine.Value{}
	for _, v := range kept {
		sizes[v.Key] = v.Value
	}
	reset := slices.Clone(e.Reset)
	if e.All {
		reset = slices.Collect(maps.Keys(sizes)) // order: sorted below
	}
	changes := map[string]engine.SessionChange{}
	for _, key := range reset {
		if _, there := sizes[key]; !there && !e.All {
			return nil, unknownStateKey(row.ID, key)
		}
		changes[key] = engine.SessionChange{Key: key, Delete: true}
		delete(sizes, key)
	}
	if len(e.Set) > 0 {
		f, err := m.flowForEdit(ctx, row, e.Flow)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(e.Set)) {
			v, err := engine.Normalize(e.Set[key])
			if err == nil {
				err = runner.CheckSessionEdit(f, key, v)
			}
			if err != nil {
				return nil, err
			}
			changes[key], sizes[key] = engine.SessionChange{Key: key, Value: v}, v
		}
	}
	if n := engine.StateBytes(sizes); n > flow.MaxScopedBytes {
		return nil, &engine.Error{
			Code: engine.CodeInput, Permanent: true,
			Message: fmt.Sprintf("the state of session %s would have %d bytes, and the limit is %d", row.ID, n, flow.MaxScopedBytes),
			Hint:    "set a smaller value, or reset other keys",
		}
	}
	out := make([]engine.SessionChange, 0, len(changes))
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		out = append(out, changes[key])
	}
	return out, nil
}

func unknownStateKey(session, key string) error {
	return &engine.Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("session %s keeps no value under the state key %q", session, key),
		Hint:    fmt.Sprintf("`%s` lists the keys", engine.CommandLine("sessions", "state", "show", session)),
	}
}

// flowForEdit returns the flow that declares the keys of an edit.
func (m *Manager) flowForEdit(ctx context.Context, row *store.Session, f *flow.Flow) (*flow.Flow, error) {
	if f == nil {
		var err error
		if f, err = m.flowOfSession(ctx, row); err != nil {
			return nil, err
		}
	}
	if f.Name != row.Flow {
		return nil, &engine.Error{
			Code: engine.CodeInput, Permanent: true,
			Message: fmt.Sprintf("session %s is one with flow %s, not %s", row.ID, row.Flow, f.Name),
			Hint:    "name the file of the session's flow",
		}
	}
	return f, nil
}

// checkState reads what a round with the program would start with. Changes is the number of
// changes that the values include, nil if the flow declares no key with the scope session.
func (m *Manager) checkState(ctx context.Context, p *runner.Program, row *store.Session) (changes *int64, err error) {
	if !p.HasSessionState() {
		return nil, nil
	}
	kept, err := m.store.SessionState(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	_, err = p.SessionState(row.ID, kept)
	return &row.StateChanges, err
}

// isUnfit reports whether the state of a session does not fit the flow.
func isUnfit(err error) bool {
	e, ok := errors.AsType[*engine.Error](err)
	return ok && e.Code == engine.CodeStateUnfit
}

// stateForRound returns the values that a round starts with, whose run exists.
func (m *Manager) stateForRound(ctx context.Context, f *flow.Flow, row *store.Session) (engine.Values, error) {
	p, err := m.runs.Program(ctx, f)
	if err != nil || !p.HasSessionState() {
		return nil, err
	}
	kept, err := m.store.SessionState(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	return p.SessionState(row.ID, kept)
}
