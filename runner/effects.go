package runner

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/guard"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// Do implements node.Effects. A recorded result is returned unchanged. Otherwise the results of earlier effects are
// made durable first, because the new effect may depend on them and has consequences outside.
//
// Effects are passed on by reference, which keeps the stack of a node that waits for one small.
func (a *attempt) Do(e *node.Effect) (engine.Value, error) {
	key := a.effectKey(e)
	digest, err := requestDigest(e)
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeValue, Key: key, Permanent: true, Message: err.Error()}
	}
	if e.OnlyRecorded && a.completedEffect(key) == nil {
		return nil, node.ErrNotRecorded
	}
	if a.inspection != nil {
		return a.inspectEffect(e, key, digest)
	}
	if known := a.completedEffect(key); known != nil {
		a.countReplay()
		return a.replayEffect(known, digest)
	}
	if a.onlyReads && !e.ReadOnly {
		return nil, &engine.Error{
			Code: engine.CodeRaceEffect, Key: key, Permanent: true,
			Message: "the effect " + key + " may change something outside the run, and this branch of a race may lose",
			Hint:    "move what changes something behind the race, or set " + flow.AllowEffects + ": true on it",
		}
	}
	if e.Uses.Kind != "" && !a.grants().Allows(e.Uses) {
		refused := NotGranted(e.Uses)
		refused.Key = key
		return nil, refused
	}
	if a.startedEffect(key) != nil {
		a.countReplay()
		if v, done, err := a.resolveUnknown(e.Unknown, key); done || err != nil {
			return v, err
		}
	}
	quota, err := a.reserveQuota(e, key)
	if err != nil {
		return nil, err
	}
	if quota == nil {
		return a.reserveAndRun(e, key, digest, nil)
	}
	defer a.settleQuota(quota, key)
	return a.reserveAndRun(e, key, digest, quota)
}

// reserveAndRun reserves the usage of an effect in budgets, makes its start durable and
// executes it.
func (a *attempt) reserveAndRun(e *node.Effect, key, digest string, quota *quotaHold) (engine.Value, error) {
	reserve := e.Reserve
	if err := a.reserveEffect(e, key, digest); err != nil {
		return nil, err
	}
	if quota != nil {
		quota.countRetries(a.ctx, reserve)
	}
	if err := a.commitEffectStart(e, key, digest); err != nil {
		a.untrackUnreserved(key)
		if e.Reserve != nil {
			a.m.ledger.charge(key, a.accounts, engine.Usage{})
		}
		return nil, err
	}
	return a.runEffect(e, key, digest)
}

// reserveEffect reserves what the effect may use, if a budget binds it.
func (a *attempt) reserveEffect(e *node.Effect, key, digest string) error {
	if err := a.checkPriced(e.Reserve); err != nil {
		return err
	}
	if e.Reserve != nil && !a.m.ledger.binds(a.accounts) {
		a.trackUnreserved(key, digest, e.Reserve.Usage)
		e.Reserve = nil
	}
	if e.Reserve == nil {
		return nil
	}
	return a.reserveBudget(e, key)
}

// runEffect executes an effect and records its result.
func (a *attempt) runEffect(e *node.Effect, key, digest string) (engine.Value, error) {
	a.effectsInFlight.Add(1)
	defer a.effectsInFlight.Add(-1)
	a.mu.Lock()
	a.executed = true
	a.mu.Unlock()
	defer a.chargeAfter(e, key)
	if err := a.checkMayStart(); err != nil {
		a.untrackUnreserved(key)
		return nil, err
	}
	a.resetIdleTimeout()
	a.startPartial(key)
	begin := time.Now()
	out, err := a.callEffect(e, key)
	return a.completeEffect(e, key, digest, out, err, time.Since(begin))
}

// chargeAfter charges an effect for which a budget was reserved.
func (a *attempt) chargeAfter(e *node.Effect, key string) {
	if e.Reserve != nil {
		a.chargeReserved(key, e.Reserve.Add(e.Reserve.RetryUsage))
	}
}

// completeEffect records the result of an effect that has returned.
func (a *attempt) completeEffect(e *node.Effect, key, digest string, out *node.Outcome, err error, took time.Duration) (engine.Value, error) {
	a.resetIdleTimeout()
	a.mu.Lock()
	a.mayHaveLost = false
	a.mu.Unlock()
	var spent engine.Usage
	if err != nil && a.ctx.Err() != nil {
		switch {
		case e.Reserve != nil: // the interrupted try is charged at its reservation
			spent = spent.Add(e.Reserve.RetryUsage)
		case out.Usage != nil:
			spent = spent.Add(*out.Usage)
		}
		a.chargeCutOff(key, digest, spent)
		a.notePartial(key)
		return nil, context.Cause(a.ctx) // outcome unknown: nothing is recorded
	}
	if err != nil && out.Unknown {
		return a.unknownOutcome(e.Unknown, key, digest, spent, err)
	}
	done := &engine.EffectCompleted{
		Key: key, Digest: digest, Usage: out.Usage, Manifest: out.Manifest,
		Micros: took.Microseconds(),
	}
	if err == nil || out.Value != nil {
		v, invalid := engine.Normalize(out.Value)
		if done.Result = v; err == nil {
			err = invalid
		}
	}
	if err != nil {
		done.Error = a.toError(err)
		done.Error.Key = key
	}
	a.recordEffect(key, done)
	if done.Error != nil {
		return engine.Copy(done.Result), done.Error
	}
	return engine.Copy(done.Result), nil
}

// chargeCutOff keeps what an effect has spent that was cut off, as one of unknown outcome is charged at its reservation.
func (a *attempt) chargeCutOff(key, digest string, spent engine.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removeUnreserved(key)
	if spent == (engine.Usage{}) || a.abandoned {
		return
	}
	a.pending = append(a.pending, &engine.EffectStarted{Key: key, Digest: digest, Reserve: &spent})
}

// unknownOutcome applies the policy of an effect that reported an unknown outcome. If a
// person is asked, nothing is recorded, as if the process had ended during the effect.
func (a *attempt) unknownOutcome(policy node.UnknownPolicy, key, digest string, spent engine.Usage, err error) (engine.Value, error) {
	if policy == node.UnknownAsk {
		a.chargeCutOff(key, digest, spent)
		a.mu.Lock()
		if a.startedEffects == nil {
			a.startedEffects = make(map[string]*engine.EffectStarted)
		}
		a.startedEffects[key] = nextStart(a.startedEffects[key], key, digest)
		a.mu.Unlock()
		v, _, err := a.resolveUnknown(policy, key) // this start has no answer yet
		return v, err
	}
	failure := a.toError(err)
	failure.Code, failure.Key = engine.CodeEffectUnknown, key
	failure.Permanent, failure.NoRetry = policy == node.UnknownFail, policy == node.UnknownFail
	done := &engine.EffectCompleted{Key: key, Digest: digest, Error: failure}
	if spent != (engine.Usage{}) {
		done.Usage = &spent
	}
	a.recordEffect(key, done)
	return nil, failure
}

// startedEffect returns the last durable start of an effect, nil for none.
func (a *attempt) startedEffect(key string) *engine.EffectStarted {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.startedEffects[key]
}

// chargeReserved charges an effect that has ended, by its recorded usage or else by its reservation, and releases the
// reservation.
func (a *attempt) chargeReserved(key string, took engine.Usage) {
	if done := a.completedEffect(key); done != nil {
		took = engine.Usage{}
		if done.Usage != nil {
			took = *done.Usage
		}
	}
	a.m.ledger.charge(key, a.accounts, took)
}

// callEffect calls the effect's function and normalizes what it returns.
func (a *attempt) callEffect(e *node.Effect, key string) (*node.Outcome, error) {
	out := new(node.Outcome)
	ctx := a.effectContext(e)
	if e.Interruptible {
		var release func()
		ctx, release = a.allowInterrupt(ctx)
		defer release()
	}
	key = a.ctx.Info().Run + "/" + key
	if e.Guarded {
		return out, guard.Catch(func() error { return performEffect(ctx, e, key, out) })
	}
	return out, guard.Call(func() error { return performEffect(ctx, e, key, out) })
}

// effectContext returns the context of an effect.
func (a *attempt) effectContext(e *node.Effect) context.Context {
	ctx := a.ctx.Bound()
	if g := a.grants(); e.Uses.Kind == node.UseHost && g != nil {
		ctx = node.WithHosts(ctx, func(host string) bool { return g.Allows(node.Use{Kind: node.UseHost, Name: host}) })
	}
	return ctx
}

func performEffect(ctx context.Context, e *node.Effect, key string, out *node.Outcome) (err error) {
	*out, err = e.Do(ctx, key)
	return normalizeOutcome(out, err)
}

// normalizeOutcome converts what an effect returned to values that can be stored. It is not inlined, so that a node that waits for
// an effect has nothing of it on its stack.
//
//go:noinline
func normalizeOutcome(out *node.Outcome, err error) error {
	if err == nil {
		out.Value, err = engine.Normalize(out.Value)
	}
	if err == nil {
		out.Manifest, err = engine.Normalize(out.Manifest)
	}
	return plainErrorOf(err)
}

// effectKey returns the key of an effect. The ordinals of answers that ended an earlier attempt are skipped.
func (a *attempt) effectKey(e *node.Effect) string {
	prefix := a.Path + "/" + e.Name + "#"
	if e.Index > 0 && e.Try > 1 {
		return prefix + strconv.Itoa(e.Index) + "." + strconv.Itoa(e.Try)
	}
	if e.Index > 0 {
		return prefix + strconv.Itoa(e.Index)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Try > 1 {
		return prefix + strconv.Itoa(max(a.ordinals.of(e.Name), 1)) + "." + strconv.Itoa(e.Try)
	}
	for {
		key := prefix + strconv.Itoa(a.ordinal(e.Name))
		if known := a.effects[key]; known == nil || !known.Superseded {
			return key
		}
	}
}

func (a *attempt) completedEffect(key string) *engine.EffectCompleted {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.effects[key]
}

// countReplay counts a recorded effect that the attempt requests again.
func (a *attempt) countReplay() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replayed++
}

// replayEffect returns a recorded result, if it answers the same request.
func (a *attempt) replayEffect(known *engine.EffectCompleted, digest string) (engine.Value, error) {
	if known.Digest != digest {
		return nil, &engine.Error{
			Code: engine.CodeNondeterministic, Key: known.Key, Permanent: true,
			Message: "the node asks for something else than it did the first time under the effect key " + known.Key,
			Hint:    "a node must ask for the same effects when it is entered again: take time and chance from ctx",
		}
	}
	if known.Error != nil {
		return engine.Copy(known.Result), known.Error
	}
	return engine.Copy(known.Result), nil
}

// unknownMessage describes an effect with an unknown outcome.
const unknownMessage = "the process ended or the connection was lost while this effect was in flight; whether it happened is not known"

// resolveUnknown decides about an effect that was started before a crash and has no recorded result.
func (a *attempt) resolveUnknown(policy node.UnknownPolicy, key string) (v engine.Value, done bool, err error) {
	unknown := &engine.Error{
		Code: engine.CodeEffectUnknown, Key: key, Permanent: true,
		Message: unknownMessage,
	}
	switch policy {
	case node.UnknownRetry:
		return nil, false, nil
	case node.UnknownFail:
		return nil, true, unknown
	case node.UnknownAsk:
	}
	ans, err := a.wait(engine.Interrupt{
		ID: a.outcomeQuestionID(key), Kind: engine.AwaitEffect,
		Prompt: fmt.Sprintf("%s: did the effect %s happen? Answer \"retry\" to ask again with the same key, "+
			"\"fail\" to fail the node, or {\"result\": ...} to say what it returned.", unknown.Message, key),
	})
	if err != nil {
		return nil, true, err
	}
	if m, ok := ans.Value.(map[string]any); ans.Given && ok {
		return m["result"], true, nil
	}
	if ans.Given && ans.Value == outcomeRetry {
		return nil, false, nil
	}
	return nil, true, unknown
}

// outcomeQuestionID returns the id of the question about the outcome of an effect. Each start with an unknown outcome
// has its own question, so that an answer applies once. The id contains the effect's number, not the order of the
// questions, because parallel tool calls ask in any order.
func (a *attempt) outcomeQuestionID(key string) string {
	id := a.Path + ":effect." + strings.TrimPrefix(key, a.Path+"/")
	if again := a.startedEffect(key).UnknownStarts; again > 0 || a.Attempt > 1 {
		id += fmt.Sprintf(".%d.%d", a.Attempt, again+1)
	}
	return id
}

// nextStart returns the start of an effect that follows the start before, nil for none.
func nextStart(before *engine.EffectStarted, key, digest string) *engine.EffectStarted {
	start := &engine.EffectStarted{Key: key, Digest: digest}
	if before != nil {
		start.UnknownStarts = before.UnknownStarts + 1
	}
	return start
}

// commitEffectStart makes durable what must be durable before the effect starts.
func (a *attempt) commitEffectStart(e *node.Effect, key, digest string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.startedEffects[key]
	// A start that was charged as interrupted is charged for good before the call is repeated.
	lost := a.lostCall(before, key, digest)
	if lost != nil {
		a.pending = append(a.pending, lost)
	}
	if e.Unknown != node.UnknownRetry || e.Reserve != nil || lost != nil || before != nil && before.Reserve != nil {
		start := nextStart(before, key, digest)
		if e.Reserve != nil {
			start.Reserve = &e.Reserve.Usage
		}
		a.pending = append(a.pending, start)
	}
	if len(a.pending) == 0 {
		return nil
	}
	err := a.io.flush(a, a.pending)
	a.pending = nil
	return err
}

// Record implements node.Effects.
func (a *attempt) Record(s engine.Step) error {
	e := &engine.StepRecorded{Path: a.Path, Step: s}
	for _, v := range []*engine.Value{&e.Input, &e.Output} {
		n, err := engine.Normalize(*v)
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", s.Number, s.Name, err)
		}
		*v = n
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if key := s.Key(a.Attempt); a.inspection == nil && !slices.Contains(a.steps, key) {
		a.steps = append(a.steps, key)
		a.pending = append(a.pending, e)
	}
	return nil
}

func (a *attempt) recordEffect(key string, done *engine.EffectCompleted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abandoned {
		return
	}
	if a.effects == nil {
		a.effects = make(map[string]*engine.EffectCompleted)
	}
	a.effects[key] = done
	a.removeUnreserved(key)
	a.pending = append(a.pending, done)
}

// requestDigest identifies a request.
func requestDigest(e *node.Effect) (string, error) {
	sum := e.Digest
	if sum == nil {
		if e.Request == nil {
			return "", nil
		}
		b, err := engine.AppendValue(nil, e.Request)
		if err != nil {
			return "", fmt.Errorf("effect request: %w", err)
		}
		whole := sha256.Sum256(b)
		sum = whole[:]
	}
	return base64.RawURLEncoding.EncodeToString(sum[:12]), nil
}

// toError converts any error to one with a code and a node.
func (a *attempt) toError(err error) *engine.Error {
	var out engine.Error
	if e, ok := guard.Find[*engine.Error](err); ok {
		out = *e
	} else if m, ok := guard.Find[*llm.Error](err); ok {
		out = engine.Error{Code: m.Code, Message: m.Message, Permanent: !m.Retry, RetryAfter: m.RetryAfter.Milliseconds()}
	} else if p, ok := guard.Find[*guard.Panic](err); ok {
		out = engine.Error{
			Code: engine.CodeNodePanic, Permanent: true,
			Message: "the node panicked: " + p.Text, Hint: firstFrames(p.Stack),
		}
	} else {
		out = engine.Error{Code: engine.CodeNodeFailed, Message: guard.Text(err)}
	}
	if setting, _, named := strings.Cut(out.Message, ": "); out.Code == engine.CodeExpression && out.Node == "" && named {
		out.Message += positionText(a.Plan.Def.PlaceOf(setting))
	}
	if out.Node == "" {
		out.Node = a.Path
	}
	if out.Attempt == 0 {
		out.Attempt = a.Attempt
	}
	return &out
}

// plainErrorOf converts an error of foreign code to one whose methods are known to return.
func plainErrorOf(err error) error {
	if err == nil {
		return nil
	}
	chain := guard.Chain(err)
	for _, e := range chain {
		switch e.(type) { //nolint:errorlint // the chain is followed here
		case *engine.Error, *llm.Error, *limitReached, *guard.Panic:
			return e
		}
		if e == node.ErrSuspended || e == context.Canceled || e == context.DeadlineExceeded { //nolint:errorlint // see above
			return &plainError{guard.Text(err), e}
		}
	}
	return &plainError{guard.Text(err), nil}
}

type plainError struct {
	text  string
	cause error
}

// Error implements error.
func (e *plainError) Error() string { return e.text }

// Unwrap returns the error from which it was made, if that is one of this project.
func (e *plainError) Unwrap() error { return e.cause }
