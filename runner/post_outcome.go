package runner

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Outcome returns the outcome of a message that was put into the inbox of a run: nil if the
// journal has it, why it was refused, or pending if it still waits. A message that cannot be
// applied is removed. Without p.Value, the value is that of the inbox, and not compared once
// the message has been applied.
func (l *Local) Outcome(ctx context.Context, p store.Post) (pending bool, err error) {
	posts, err := l.store.Inbox(ctx, p.Run)
	if err != nil {
		return false, fmt.Errorf("run %s: %w", p.Run, err)
	}
	for _, found := range posts {
		if found.ID == p.ID {
			p.Value, pending = found.Value, true
		}
	}
	if o, ok := p.Value.(map[string]any); ok && p.Kind == PostQueuedAnswer {
		p.Value = o["value"]
	}
	switch p.Kind {
	case "cancel":
		err = l.cancelOutcome(ctx, &p, pending)
	case "event":
		err = l.eventOutcome(ctx, &p, pending)
	default:
		err = l.answerOutcome(ctx, p.Run, p.Name, &p, pending)
	}
	if err == nil || !pending {
		return pending, err
	}
	if removed := l.store.RemovePosts(ctx, []int64{p.ID}); removed != nil {
		return false, removed
	}
	return false, err
}

// SettlePost applies what Outcome says to a message in the inbox of a run, of which only the id is known. It reports
// whether the message still waits, and whether it was refused and removed. A message that is not in the inbox neither waits
// nor was refused by this call.
func (l *Local) SettlePost(ctx context.Context, run string, id int64) (pending, refused bool, err error) {
	posts, err := l.store.Inbox(ctx, run)
	if err != nil {
		return false, false, fmt.Errorf("run %s: %w", run, err)
	}
	i := slices.IndexFunc(posts, func(p store.Post) bool { return p.ID == id })
	if i < 0 {
		return false, false, nil
	}
	pending, err = l.Outcome(ctx, posts[i])
	if errors.Is(err, ErrNoInterrupt) || errors.Is(err, ErrAnswer) || errors.Is(err, ErrStatus) {
		return false, true, nil
	}
	return pending, false, err
}

// cancelOutcome returns why a cancellation cannot be applied, if it is pending, or was not.
func (l *Local) cancelOutcome(ctx context.Context, p *store.Post, pending bool) error {
	v, err := l.inspectForCommand(ctx, p.Run)
	if err != nil || v.Run.CancelRequested() {
		return err
	}
	e, err := Cancel(p.By, "")(v.Run)
	if err == nil && e != nil && !pending {
		err = fmt.Errorf("run %s: the cancellation was not applied; send it again: %w", p.Run, ErrStatus)
	}
	return err
}

// eventOutcome is cancelOutcome for an outside event.
func (l *Local) eventOutcome(ctx context.Context, p *store.Post, pending bool) error {
	v, err := l.inspectForCommand(ctx, p.Run)
	if err != nil {
		return err
	}
	if !pending {
		found, err := l.findAnswer(ctx, p.Run, p)
		if found || err != nil {
			return err
		}
	}
	for _, i := range v.Run.Interrupts() {
		if i.Kind == engine.AwaitEvent && i.Event == p.Name {
			return l.answerOutcome(ctx, p.Run, i.ID, p, true)
		}
	}
	_, err = Signal(p.Name, p.Value, p.By)(v.Run)
	return err
}

// answerOutcome is cancelOutcome for the answer to an interrupt of a run or of one of its child
// runs.
func (l *Local) answerOutcome(ctx context.Context, run, id string, p *store.Post, pending bool) error {
	v, err := l.inspectForCommand(ctx, run)
	if err != nil {
		return err
	}
	if outer, inner, below := strings.Cut(id, ">"); below {
		child, err := l.ChildAt(ctx, run, outer)
		if err != nil || child.Child == nil {
			return errors.Join(err, fmt.Errorf("run %s: %s: %w", run, id, ErrNoInterrupt))
		}
		return l.answerOutcome(ctx, child.Child.Run, inner, p, pending)
	}
	if !pending {
		for _, c := range v.Commits {
			for _, e := range c.Events {
				if a, ok := e.(*engine.InterruptAnswered); ok && a.ID == id && isAnswer(a, p) {
					return nil
				}
			}
		}
	}
	if _, err = Answer(id, p.Value, p.By)(v.Run); err == nil && !pending {
		err = fmt.Errorf("run %s: %s: the answer was not applied; send it again: %w", run, id, ErrAnswer)
	}
	return err
}

// isAnswer reports whether an event of a journal is the answer of a message.
func isAnswer(a *engine.InterruptAnswered, p *store.Post) bool {
	return a.By == p.By && (p.Value == nil || reflect.DeepEqual(a.Value, p.Value))
}

// childrenAwaited returns the child runs that a node starts to wait for with an event.
func childrenAwaited(e engine.Event) (runs []string) {
	w, ok := e.(*engine.NodeWaiting)
	if !ok {
		return nil
	}
	for _, i := range w.Interrupts {
		if i.Child != nil {
			runs = append(runs, i.Child.Run)
		}
	}
	return runs
}

// findAnswer reports whether a run or one of its child runs has an answer in its journal.
func (l *Local) findAnswer(ctx context.Context, run string, p *store.Post) (bool, error) {
	return l.findEvent(ctx, run, func(e engine.Event) bool {
		a, ok := e.(*engine.InterruptAnswered)
		return ok && isAnswer(a, p)
	})
}

// inspectForCommand reads the present state of a run.
func (l *Local) inspectForCommand(ctx context.Context, id string) (*RunView, error) {
	p, err := l.o.RecordedProgram(ctx, id)
	if err != nil {
		return nil, err
	}
	return l.Inspect(ctx, p, id, 0)
}
