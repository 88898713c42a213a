package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
)

// errAborted is the cause with which a run cancels its own attempts.
var errAborted = errors.New("the run stops here")

// applyOutcome converts the result of a node's function to events and applies them. It ends the attempt.
func (m *machine) applyOutcome(at int64, a *attempt, err error, micros int64) error {
	delete(m.active, a.Path)
	for _, e := range a.pending {
		if err := m.step(at, e); err != nil {
			return err
		}
	}
	a.pending = nil
	end := m.outcomeEvent(a, err, micros)
	if _, completed := end.(*engine.NodeCompleted); completed && a.declared != nil {
		if err := m.step(at, a.declared); err != nil {
			return err
		}
	}
	if err := m.step(at, end); err != nil {
		return err
	}
	return m.settleLateQuestions(at, a)
}

// waitsOf returns what an attempt waits for, in the order of the numbers in its ids: parallel calls arrive in any order. A
// child that has ended while the attempt executed is not started again, for the engine or for a reader of the events.
func (m *machine) waitsOf(a *attempt) []engine.Interrupt {
	slices.SortStableFunc(a.interrupts, func(x, y engine.Interrupt) int { return compareNumbered(x.ID, y.ID) })
	known := m.run.Answers(a.Path)
	for i := range a.interrupts {
		if ans := known[a.interrupts[i].ID]; ans != nil && ans.Given {
			a.interrupts[i].Child = nil
		}
	}
	return a.interrupts
}

// compareNumbered compares texts, and numbers in them by their value.
func compareNumbered(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingDigits(a), leadingDigits(b)
		if x == "" || y == "" {
			x, y = a[:1], b[:1]
		} else if len(x) != len(y) {
			return len(x) - len(y)
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		a, b = a[len(x):], b[len(y):]
	}
	return len(a) - len(b)
}

func leadingDigits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }

// outcomeEvent returns the event that ends an entry into an attempt.
func (m *machine) outcomeEvent(a *attempt, err error, micros int64) (e engine.Event) {
	defer func() {
		if p := recover(); p != nil { // the node's result cannot be committed
			e = &engine.NodeFailed{Path: a.Path, Error: a.toError(guard.Recovered(p)), Micros: micros}
		}
	}()
	timeoutErr, timedOut := a.timedOut()
	switch {
	case timedOut:
		return a.failedEvent(timeoutErr, micros)
	case len(a.interrupts) > 0:
		return &engine.NodeWaiting{Path: a.Path, Interrupts: m.waitsOf(a)}
	case a.pullPort != "":
		return &engine.NodePulling{Path: a.Path, Port: a.pullPort}
	case a.expand != nil && err != nil:
		if e := a.normalizeItems(); e != nil {
			return a.failedEvent(e, micros)
		}
		return a.expand
	case err != nil && errors.Is(context.Cause(a.ctx), errAborted):
		return m.abandonedEvent(a)
	case err != nil:
		if limit, ok := errors.AsType[*limitReached](err); ok && limit.branch {
			return &engine.NodeCompleted{Path: a.Path, Outputs: limit.outputs, Micros: micros}
		}
		return a.failedEvent(err, micros)
	}
	if m.run.HasOpenChild(a.Path) {
		return a.failedEvent(&engine.Error{
			Code: engine.CodeNodeFailed, Permanent: true,
			Message: "the node ended while a child run that it started is still running",
			Hint:    "a node returns the error of ctx.Child as it is: it is run again once the child has ended",
		}, micros)
	}
	done, err := m.completion(a, micros)
	if err != nil {
		return a.failedEvent(err, micros)
	}
	return done
}

// cancelledEvent returns the event that ends an attempt that the run no longer needs. An attempt with children waits
// for their end first.
func (m *machine) cancelledEvent(path string, unknown bool) engine.Event {
	if m.run.HasOpenChild(path) {
		return &engine.NodeWaiting{Path: path}
	}
	return &engine.NodeCancelled{Path: path, Unknown: unknown}
}

// hasUnknownEffect reports whether an effect was announced and has no result.
func (a *attempt) hasUnknownEffect() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.startedEffects {
		if a.effects[key] == nil {
			return true
		}
	}
	return false
}

func (a *attempt) failedEvent(err error, micros int64) engine.Event {
	if cause := context.Cause(a.ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	_, meta, _ := a.ctx.Result()
	a.keepUntakenSteering()
	e := a.toError(err)
	failed := &engine.NodeFailed{Path: a.Path, Error: e, Micros: micros, Metadata: meta}
	if !a.m.run.WouldRetry(a.Path, e) {
		failed.Contexts = a.m.unansweredMessages(a)
	}
	return failed
}

// abandonedEvent returns the event that ends an attempt that the run has stopped.
func (m *machine) abandonedEvent(a *attempt) engine.Event {
	e := m.cancelledEvent(a.Path, a.hasUnknownEffect())
	if c, ok := e.(*engine.NodeCancelled); ok {
		a.keepUntakenSteering()
		c.Contexts = m.unansweredMessages(a)
	}
	return e
}

// managers returns the managers of the contexts that the attempt may have changed, its own first.
func (a *attempt) managers() []*convo.Manager {
	if a.manager == nil {
		return a.otherManagers
	}
	return append([]*convo.Manager{a.manager}, a.otherManagers...)
}

// unansweredMessages keeps the message of a person to a node that will not answer.
func (m *machine) unansweredMessages(a *attempt) []engine.ContextChange {
	var out []engine.ContextChange
	for _, mgr := range a.managers() {
		before, ok := m.contexts[mgr.ID()]
		if !ok || len(mgr.UserInputs()) == 0 {
			continue
		}
		change := convo.Change{Append: mgr.UserInputs()}
		after, err := before.Apply(change)
		if err != nil {
			continue // later readers of the history see it
		}
		if n := after.History.Len() - before.History.Len(); n == len(change.Append) {
			out = append(out, engine.ContextChange{ID: mgr.ID(), Adds: n, Body: &change})
		}
	}
	return out
}

func (a *attempt) normalizeItems() error {
	for i, item := range a.expand.Items {
		for j := range item {
			v, err := engine.Normalize(item[j].Value)
			if err != nil {
				return fmt.Errorf("iteration %d, input %s: %w", i+1, item[j].Name, err)
			}
			item[j].Value = v
		}
	}
	return nil
}

// completion builds a node's transaction.
func (m *machine) completion(a *attempt, micros int64) (*engine.NodeCompleted, error) {
	a.keepUntakenSteering()
	out, meta, state := a.ctx.Result()
	done := &engine.NodeCompleted{Path: a.Path, Outputs: out, Metadata: meta, State: state, Micros: micros, Cached: a.cacheHit}
	if err := m.addContextChanges(a, done); err != nil {
		return nil, err
	}
	if e := m.run.CheckWrites(a.Path, done.State); e != nil {
		return nil, e
	}
	if err := m.checkState(a.Path, done.State); err != nil {
		return nil, err
	}
	return done, nil
}

// isContext reports whether a node returns a context, which would be a copy without a writer, instead of its handle.
func isContext(v any) bool {
	switch v.(type) {
	case convo.Context, *convo.Context, convo.History, *convo.History, *convo.Manager:
		return true
	}
	return false
}

// addContextChanges adds contexts and lanes to a completion.
func (m *machine) addContextChanges(a *attempt, done *engine.NodeCompleted) error {
	if a.Plan.Body != nil {
		lanes, err := m.laneCommits(a.Path)
		if err != nil {
			return err
		}
		done.Contexts = lanes
		done.State = append(m.run.LaneChanges(a.Path), done.State...)
	}
	done.Contexts = append(done.Contexts, a.created...)
	for _, mgr := range a.managers() {
		changes, err := m.contextChanges(a.Path, mgr)
		if err != nil {
			return err
		}
		done.Contexts = append(done.Contexts, changes...)
	}
	return nil
}

// checkState validates the resulting state against its keys' schemas.
func (m *machine) checkState(path string, changes []engine.StateChange) error {
	if len(m.program.schemas) == 0 || len(changes) == 0 {
		return nil
	}
	scope, _ := m.run.ScopeOf(path)
	state := m.run.ScopeState(scope)
	for _, c := range changes {
		schema := m.program.schemas[c.Key]
		if schema == nil || c.Delete {
			continue
		}
		old, ok := state.Get(c.Key)
		v, err := engine.Reduce(m.reducers(c.Key), old, ok, c.Value)
		if err == nil {
			err = schema.Check(v)
		}
		if err != nil {
			return &engine.Error{
				Code: engine.CodeValue, Permanent: true,
				Message: fmt.Sprintf("state key %q: %v", c.Key, err),
				Hint:    "write what the key's schema under `state:` allows",
			}
		}
	}
	return nil
}
