package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// ErrNotStarted: the given node has not started.
var ErrNotStarted = errors.New("the node has not started")

// ModelCall is one model call of a node.
type ModelCall struct {
	// Key is the effect's: path/name#ordinal.
	Key string
	// Request is the request to the model, in the form of llm.Request.Canonical; nil if the node's type is not
	// available, so that only its Digest is known.
	Request json.RawMessage
	Digest  string
	// Proven means that the journal has the digest of exactly this request. Otherwise the call was not completed, or
	// the program has changed since.
	Proven bool
	// Manifest says which part of the context was not sent and why; nil if everything was.
	Manifest engine.Value
	// Result is the model's answer and Error its failure, as recorded.
	Result engine.Value
	Error  *engine.Error
}

// errInspectionDone ends a node's function at the end of the recorded calls.
var errInspectionDone = errors.New("there is no more record of this attempt")

// promptInspection has the findings of an inspected attempt so far.
type promptInspection struct{ calls []ModelCall }

// InspectPrompt returns the model calls of a node's newest attempt with exactly what was sent. It enters the attempt
// again with all recorded effects and executes nothing outside; the digests in the journal prove that the requests
// are the same. A node whose outputs came from the cache has none.
func (l *Local) InspectPrompt(ctx context.Context, p *Program, id, path string) ([]ModelCall, error) {
	all, err := l.Inspect(ctx, p, id, 0)
	if err != nil {
		return nil, err
	}
	entered, facts := lastEntry(all.Commits, path)
	if entered == 0 {
		return nil, fmt.Errorf("explain %s: %w", path, ErrNotStarted)
	}
	if slices.ContainsFunc(facts, func(f engine.Event) bool {
		done, ok := f.(*engine.NodeCompleted)
		return ok && done.Path == path && done.Cached
	}) {
		return nil, nil
	}
	then, err := l.Inspect(ctx, p, id, entered)
	if err != nil {
		return nil, err
	}
	e, ok := then.Run.Entry(path)
	if !ok {
		return nil, fmt.Errorf("explain %s: %w", path, ErrNotStarted)
	}
	a := &attempt{inspection: &promptInspection{}, io: inspectionIO{}}
	then.m.initAttempt(a, e, e.Plan.Host.(*preparedNode))
	a.applyFacts(facts)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.ctx.Bind(ctx)
	a.cancel = cancel
	if _, err := a.runNode(); err != nil && len(a.inspection.calls) == 0 && !errors.Is(err, errInspectionDone) && !errors.Is(err, node.ErrSuspended) {
		return nil, fmt.Errorf("explain %s: %w", path, err)
	}
	return a.inspection.calls, nil
}

// ModelCalls returns the model calls of a node's newest attempt from the journal, without the requests, for which the
// node's type is needed.
func (l *Local) ModelCalls(ctx context.Context, p *Program, id, path string) ([]ModelCall, error) {
	all, err := l.Inspect(ctx, p, id, 0)
	if err != nil {
		return nil, err
	}
	entered, facts := lastEntry(all.Commits, path)
	if entered == 0 {
		return nil, fmt.Errorf("model calls of %s: %w", path, ErrNotStarted)
	}
	var out []ModelCall
	for _, f := range facts {
		e, ok := f.(*engine.EffectCompleted)
		if !ok || e.Usage == nil || e.Usage.Calls == 0 {
			continue
		}
		if key, ok := strings.CutPrefix(e.Key, path+"/"); ok && !strings.Contains(key, "/") {
			out = append(out, ModelCall{Key: e.Key, Digest: e.Digest, Manifest: e.Manifest, Result: e.Result, Error: e.Error})
		}
	}
	return out, nil
}

// lastEntry returns the number of the event that entered the node last, and the events after it.
func lastEntry(commits []engine.Commit, path string) (entered int64, after []engine.Event) {
	for _, c := range commits {
		for i, e := range c.Events {
			enters := false
			switch e := e.(type) {
			case *engine.NodeStarted:
				enters = e.Path == path
			case *engine.NodeResumed:
				enters = e.Path == path
			}
			if enters {
				entered, after = c.First+int64(i), nil
				continue
			}
			after = append(after, e)
		}
	}
	return entered, after
}

// applyFacts applies the facts of the attempt from after its entry.
func (a *attempt) applyFacts(facts []engine.Event) {
	for _, f := range facts {
		switch f := f.(type) {
		case *engine.EffectCompleted:
			if key, ok := strings.CutPrefix(f.Key, a.Path+"/"); ok && !strings.Contains(key, "/") {
				a.recordEffect(f.Key, f)
			}
		case *engine.SteeringAdded:
			if f.Path == a.Path && f.Text != "" {
				a.steering.added = append(a.steering.added, f)
			}
		case *engine.SteeringTaken:
			if engine.EventPath(f) == a.Path {
				a.recordTaken(f.Key, f.IDs)
			}
		case *engine.ChildReported:
			if f.Status.Ended() {
				a.applyAnswer(f.ID, engine.Answer{Given: true, Child: f})
			}
		case *engine.InterruptAnswered:
			a.applyAnswer(f.ID, engine.Answer{Value: f.Value, Given: true, By: f.By})
		}
	}
	a.pending = nil
}

func (a *attempt) applyAnswer(id string, ans engine.Answer) {
	if !strings.HasPrefix(id, a.Path+":") {
		return
	}
	if a.answers == nil {
		a.answers = make(map[string]*engine.Answer)
	}
	a.answers[id] = &ans
}

// inspectEffect records a model call and returns the recorded result of any effect.
func (a *attempt) inspectEffect(e *node.Effect, key, digest string) (engine.Value, error) {
	known := a.completedEffect(key)
	if e.Text != nil && e.Reserve != nil {
		text, err := e.Text()
		if err != nil {
			return nil, err
		}
		s := ModelCall{Key: key, Request: text}
		if known != nil {
			s.Proven, s.Manifest, s.Digest = known.Digest == digest, known.Manifest, known.Digest
			s.Result, s.Error = known.Result, known.Error
		}
		a.mu.Lock()
		a.inspection.calls = append(a.inspection.calls, s)
		a.mu.Unlock()
	}
	switch {
	case known == nil:
		return nil, errInspectionDone
	case known.Error != nil:
		return engine.Copy(known.Result), known.Error
	}
	return engine.Copy(known.Result), nil
}

// inspectionIO is the attemptIO of an inspected attempt.
type inspectionIO struct{}

func (inspectionIO) flush(*attempt, []engine.Event) error { return errInspectionDone }
func (inspectionIO) emit(*attempt, llm.Chunk)             {}
