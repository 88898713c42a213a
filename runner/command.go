package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/store"
)

// The errors of refused commands.
var (
	// ErrNoInterrupt: no interrupt with that id waits for an answer.
	ErrNoInterrupt = errors.New("no such open interrupt")
	// ErrAnswer: the answer is invalid for the interrupt.
	ErrAnswer = errors.New("the answer does not fit")
	// ErrEnded: the execution has ended; the run may be resumed.
	ErrEnded = errors.New("the execution has ended")
	// ErrStatus: the status of the run or node does not allow the command.
	ErrStatus = errors.New("the status of the run or node does not allow it")
)

// errCancelling: the run is already being cancelled.
var errCancelling = errors.New("the run is being cancelled")

// Command creates an event from the current state of a run, or returns why it cannot; nil means that there is nothing
// to do.
type Command func(r *engine.Run) (engine.Event, error)

// command lets the run's driver carry out a command.
func (x *Execution) command(c Command) chan error {
	ack := make(chan error, 1)
	x.send(driverMessage{command: c, ack: ack})
	return ack
}

// Do carries out a command and returns when it is durable. ErrEnded means that the execution had ended: resume the
// run.
func (x *Execution) Do(ctx context.Context, c Command) error {
	return x.awaitAck(ctx, x.command(c))
}

func (x *Execution) awaitAck(ctx context.Context, ack chan error) error {
	select {
	case err := <-ack:
		return err
	case <-x.done:
		select {
		case err := <-ack:
			return err
		default:
			return ErrEnded
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Do carries out a command on a run, which is resumed first unless this process executes it, and returns when it is
// durable. A command for a child run, with an id "PATH>ID", is carried out there; the result is the execution of the
// given run.
func (l *Local) Do(ctx context.Context, p *Program, id string, c Command) (*Execution, error) {
	x, err := l.doHere(ctx, p, id, c)
	if e, ok := errors.AsType[*childCommand](err); ok {
		return l.passToChild(ctx, p, id, e.child.Fingerprint, func(cp *Program) (*Execution, error) {
			return l.Do(ctx, cp, e.child.Run, e.command)
		}, e.child.Run)
	}
	return x, err
}

// childCommand means that a command is for a child run.
type childCommand struct {
	child   *engine.ChildStart
	command Command
}

// Error names the child.
func (e *childCommand) Error() string { return "this is for child run " + e.child.Run }

// passToChild carries out a command on a child of a run, of which do returns the execution, and returns the run's own
// execution, to which the child has reported.
func (l *Local) passToChild(ctx context.Context, p *Program, id, fingerprint string, do func(*Program) (*Execution, error), child string) (*Execution, error) {
	cp, err := l.programOf(ctx, fingerprint)
	if err != nil {
		return nil, fmt.Errorf("run %s: child run %s: %w", id, child, err)
	}
	x, err := do(cp)
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%w: it has not started", ErrNoInterrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	select {
	case <-x.parentLink.whenReady():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	y, err := l.Resume(ctx, p, id)
	if err != nil {
		return nil, &AcceptedByChild{Run: id, Child: child, Err: err}
	}
	return y, nil
}

// AcceptedByChild is the error of a command that a child run has recorded, if the given run cannot be resumed here,
// for example because another process still owns it. The command must not be repeated: resuming the run is enough.
type AcceptedByChild struct {
	Run   string // the given run
	Child string // the run that recorded the command
	Err   error
}

// Error names the child run that has recorded the command.
func (e *AcceptedByChild) Error() string {
	return fmt.Sprintf("run %s: child run %s has recorded the command, but the run could not be resumed here: %v", e.Run, e.Child, e.Err)
}

// Unwrap returns why the run could not be resumed.
func (e *AcceptedByChild) Unwrap() error { return e.Err }

func (l *Local) doHere(ctx context.Context, p *Program, id string, c Command) (*Execution, error) {
	for {
		if x := l.Held(id); x != nil {
			// A refused commit has stored nothing of the command, and ends the execution.
			if err := x.Do(ctx, c); !errors.Is(err, ErrEnded) && !errors.Is(err, store.ErrFenced) {
				return x, err
			}
			<-x.done
		}
		var ack chan error
		x, fresh, err := l.getOrLoad(ctx, p, id, loadForCommand, func(x *Execution) error {
			ack = x.command(c)
			return nil
		})
		switch {
		case err != nil:
			return nil, err
		case fresh:
			return x, x.awaitAck(ctx, ack)
		}
	}
}

// Answer resolves an interrupt.
func Answer(id string, v engine.Value, by string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		if c, inner, ok := r.ChildInterrupt(id); ok {
			return nil, &childCommand{c.Start, Answer(inner, v, by)}
		}
		i, _, ok := r.Interrupt(id)
		if !ok {
			return nil, fmt.Errorf("run %s: %s: %w", r.ID, id, ErrNoInterrupt)
		}
		n, err := engine.Normalize(v)
		switch {
		case err != nil:
		case i.Kind == engine.AwaitEffect:
			err = checkOutcome(n)
		case i.Kind == engine.AwaitInput, i.Kind == engine.AwaitApproval, i.Schema != nil:
			err = node.CheckAnswer(i.Schema, n)
		}
		if err != nil {
			return nil, fmt.Errorf("run %s: %s: %w: %w", r.ID, id, ErrAnswer, err)
		}
		return &engine.InterruptAnswered{ID: id, Value: n, By: by}, nil
	}
}

// The answers to the question whether an effect happened, besides an object with its result.
const (
	outcomeRetry = "retry"
	outcomeFail  = "fail"
)

// checkOutcome returns why a value is not a valid answer to that question. An invalid answer must not fail the node.
func checkOutcome(v engine.Value) error {
	if o, ok := v.(map[string]any); ok {
		if _, ok = o["result"]; ok && len(o) == 1 {
			return nil
		}
	}
	if v == outcomeRetry || v == outcomeFail {
		return nil
	}
	return fmt.Errorf("expected %q, %q or {\"result\": ...}", outcomeRetry, outcomeFail)
}

// AnswerQueued is Answer with a message from the queue of the session: the commit that answers removes it from the
// queue. If the message no longer waits, the commit is refused with store.ErrNotQueued.
func AnswerQueued(id string, v engine.Value, by, message string) Command {
	return withQueuedMessage(Answer(id, v, by), message)
}

// PostQueuedAnswer is the kind of a message of an inbox that carries an AnswerQueued.
const PostQueuedAnswer = "queued"

// QueuedAnswerPost returns the message for the inbox of a run.
func QueuedAnswerPost(run, interrupt string, v engine.Value, by, message string) store.Post {
	return store.Post{Run: run, Kind: PostQueuedAnswer, Name: interrupt, By: by, Value: map[string]any{"value": v, "message": message}}
}

// queuedAnswerOfPost returns the command of such a message.
func queuedAnswerOfPost(p *store.Post) Command {
	o, _ := p.Value.(map[string]any)
	message, _ := o["message"].(string)
	return AnswerQueued(p.Name, o["value"], p.By, message)
}

func withQueuedMessage(c Command, message string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		e, err := c(r)
		if child, ok := errors.AsType[*childCommand](err); ok {
			return nil, &childCommand{child.child, withQueuedMessage(child.command, message)}
		}
		if err != nil || e == nil {
			return e, err
		}
		return &queuedAnswer{e, message}, nil
	}
}

// queuedAnswer is an event for an answer from the queue of a session. It is never journaled itself.
type queuedAnswer struct {
	engine.Event
	message string
}

// Signal delivers an outside event to the node that has waited longest for one of that name.
func Signal(name string, v engine.Value, by string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		for _, i := range r.Interrupts() {
			if i.Kind == engine.AwaitEvent && i.Event == name {
				return Answer(i.ID, v, by)(r)
			}
		}
		return nil, fmt.Errorf("run %s: no node waits for event %q: %w", r.ID, name, ErrNoInterrupt)
	}
}

// Cancel cancels the run: no effect starts after it is durable. Wait for the end of the effects in flight. Cancelling
// a run again has no effect.
func Cancel(by, reason string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		if r.CancelRequested() && !r.Status().Ended() {
			return nil, errCancelling
		}
		switch s := r.Status(); {
		case s == engine.Cancelled:
			return nil, nil
		case s.Ended():
			return nil, &Refusal{What: fmt.Sprintf("run %s cannot be cancelled", r.ID), Why: fmt.Sprintf("it has %s already", s), Instead: endedHint(r.ID)}
		}
		return &engine.CancelRequested{By: by, Reason: reason}, nil
	}
}

// OverrideNode lets a person override a node that failed, was cancelled or waits: op is "retry", "skip" or
// "complete", the last with the node's outputs.
func OverrideNode(op, path string, outputs engine.Values, by string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		if !r.CanOverride(path) {
			return nil, overrideError(r, path, overrideVerb(op))
		}
		return &engine.NodeOverridden{Path: path, Op: op, Outputs: outputs, By: by}, nil
	}
}
