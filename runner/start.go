package runner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// JournaledStart returns the start of a run from its journal.
func JournaledStart(ctx context.Context, j store.Journal, run string) (*engine.RunStarted, error) {
	for c, err := range j.Commits(ctx, run, 0) {
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", run, err)
		}
		if len(c.Events) > 0 {
			if s, ok := c.Events[0].(*engine.RunStarted); ok {
				return s, nil
			}
		}
		break
	}
	return nil, notStartedError(run)
}

// checkRepeats returns an error if the run that exists under the id was started in another way: its result would
// be taken for that of this start. A run of another flow is refused elsewhere, with what has changed.
func (b *StartOptions) checkRepeats(ctx context.Context, s store.Store, p *Program) error {
	row, err := s.Run(ctx, b.ID)
	if errors.Is(err, store.ErrNotFound) { // its start has failed
		return nil
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", b.ID, err)
	}
	if row.Base != nil {
		return reusedError("run "+b.ID+" exists and is a fork of run "+row.Base.Run, b.ID)
	}
	was, err := JournaledStart(ctx, s, b.ID)
	if e, isEngine := errors.AsType[*engine.Error](err); isEngine && e.Code == engine.CodeFork { // a run without a commit
		return nil
	}
	if err != nil || was.Fingerprint != p.Fingerprint {
		return err
	}
	if what := b.differsFrom(was); what != "" {
		return reusedError(fmt.Sprintf("run %s exists and was started %s", b.ID, what), b.ID)
	}
	return nil
}

func reusedError(what, id string) error {
	return &engine.Error{
		Code: engine.CodeRequestReused, Permanent: true, Message: what,
		Hint: fmt.Sprintf("give the new run another id; `%s` continues the one that exists", engine.CommandLine("resume", id)),
	}
}

// differsFrom says what of a start another one had differently, "" for nothing. The origin and the folder do not
// count: an honest repetition may come from elsewhere. What the runner gives to rounds and child runs follows from their
// session and parent.
func (b *StartOptions) differsFrom(was *engine.RunStarted) string {
	if names := ChangedInputs(b.Inputs, was.Inputs); len(names) > 0 {
		return fmt.Sprintf("with another input %q", names[0])
	}
	if name := b.otherState(was); name != "" {
		return fmt.Sprintf("with another state %q", name)
	}
	switch settings, ok := MainSettings(was); {
	case b.User != was.User:
		return "with another user"
	case b.Parent != was.Parent:
		return "as a child run of " + cmp.Or(was.Parent, "no run")
	case !slices.Equal(b.Targets, was.Targets):
		return "with other targets"
	case !slices.Equal(b.Breaks, was.Breaks):
		return "with other nodes to pause before"
	case b.main != nil || !ok:
		return ""
	case modelOf(b.Settings) != modelOf(settings):
		return "with another model"
	case !SameSettings(b.Settings, settings):
		return "with other settings of its main context"
	}
	return ""
}

// otherState returns a key that one start gave another value than the other, "" for none. What was read from the state
// of the user was not given: it may have changed since.
func (b *StartOptions) otherState(was *engine.RunStarted) string {
	for _, v := range b.State {
		if w, ok := was.State.Get(v.Name); !ok || !reflect.DeepEqual(v.Value, w) {
			return v.Name
		}
	}
	for _, w := range was.State {
		_, given := b.State.Get(w.Name)
		read := was.UserState != nil && slices.ContainsFunc(was.UserState.Versions, func(v engine.UserVersion) bool { return v.Key == w.Name })
		if !given && !read {
			return w.Name
		}
	}
	return ""
}

// SameSettings reports whether two settings have the same form in a journal.
func SameSettings(a, b convo.Settings) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// StartCancelled starts a round that must start to free its session, and cancels it with the same commit: no node
// runs.
func (l *Local) StartCancelled(ctx context.Context, p *Program, b StartOptions, by, reason string) (*Execution, error) {
	var ack chan error
	x, fresh, err := l.getOrLoad(ctx, p, b.ID, loadNew, func(x *Execution) error {
		if err := x.stageStart(p, &b); err != nil {
			return err
		}
		ack = x.command(Cancel(by, reason))
		return nil
	})
	if err == nil && !fresh {
		ack = x.command(Cancel(by, reason))
	}
	if err != nil {
		return nil, err
	}
	return x, x.awaitAck(ctx, ack)
}
