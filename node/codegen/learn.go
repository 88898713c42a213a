package codegen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/node"
)

// learnedKey returns the key of learned code: the user, the flow, the task, and names and
// types of the values.
func (k *codeWriting) learnedKey() (string, error) {
	b, err := engine.AppendValue(nil, []any{
		k.Language, k.Decision, texts(k.Branches), strings.ToLower(k.task()), kinds(k.state), kinds(k.inputs), texts(fileNames(k.Files)),
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	of := k.ctx.Info()
	return LearnedPrefix(of.User) + url.PathEscape(of.Flow) + "/" + hex.EncodeToString(sum[:]), nil
}

// newLearned returns the code as a candidate to store.
func (k *codeWriting) newLearned(evidence, result string) *Learned {
	of := k.ctx.Info()
	return &Learned{
		User: of.User, Flow: of.Flow, Node: of.Path, Run: of.Run, Task: excerpt.Bytes(k.hidden(k.task()), maxKept),
		Language: k.Language, At: k.ctx.Now(), Code: withoutComments(k.code), Model: k.model, State: LearnedCandidate, valuesDigest: evidence, resultDigest: result,
	}
}

// valuesDigest identifies the values that the code processed.
func (k *codeWriting) valuesDigest() (string, error) {
	files := make([]any, len(k.Files))
	for i, f := range k.Files {
		files[i] = []any{f.Name, f.Path, f.Value}
	}
	b, err := engine.AppendValue(nil, []any{k.state, k.inputs, files})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

func kinds(values map[string]any) map[string]any {
	out := make(map[string]any, len(values))
	for name, v := range values {
		out[name] = kind(v, false, 0)
	}
	return out
}

func fileNames(files []File) []string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
	}
	return names
}

// tryLearned runs learned code if reliable code exists. It returns nil if there is none or
// it failed.
func (k *codeWriting) tryLearned() (*Execution, error) {
	l, err := k.lookUpLearned()
	k.learned = l
	if l == nil || err != nil || !l.Active() {
		return nil, err
	}
	k.cached, k.code, k.round, k.model = true, l.Code, 1, l.Model
	why := map[string]any{"cache": "hit", "uses": l.Uses, "reliability": l.Reliability()}
	for _, n := range []int{stepInput, stepData, stepGenerate, stepValidate} {
		s := engine.Step{Number: n, Attempt: 1, Status: engine.StepSkipped, Output: why}
		if n == stepGenerate {
			s.Code, s.Model = l.Code, l.Model
		}
		if err := k.record(s); err != nil {
			return nil, err
		}
	}
	r, err := k.try()
	if err != nil {
		return nil, err
	}
	return r, k.countUse(r != nil)
}

// lookUpLearned looks up learned code as an effect, so that a replay finds the same.
func (k *codeWriting) lookUpLearned() (*Learned, error) {
	key, err := k.learnedKey()
	if err != nil {
		return nil, err
	}
	v, err := k.ctx.Do(node.Effect{Name: "recall", Request: key, ReadOnly: true, Do: func(c context.Context, _ string) (node.Outcome, error) {
		v, ok, err := k.ctx.Cache().Get(c, key)
		if err != nil || !ok {
			return node.Outcome{}, cacheError("look up learned code", err)
		}
		return node.Outcome{Value: v}, nil
	}})
	if err != nil {
		return nil, err
	}
	return readLearned(v), nil
}

// countUse counts a use of learned code and its success.
func (k *codeWriting) countUse(success bool) error {
	return k.updateLearned([]any{k.code, success}, func(now *Learned) *Learned {
		if now == nil || now.Code != k.code {
			return nil
		}
		now.Uses++
		if success {
			now.Successes++
		}
		return now
	})
}

// saveCandidate stores successful code as a candidate. A candidate from another input is
// tried on this one. Code with values of this run in its literals is never stored, because it
// would carry them into other runs.
func (k *codeWriting) saveCandidate(r *Execution) error {
	if k.learned != nil && k.learned.State == LearnedDisabled {
		k.notes["learning"] = map[string]any{"kept": false, "reason": "learning is disabled for this task"}
		return nil
	}
	if k.hasRunValues(k.code) {
		k.notes["learning"] = map[string]any{"kept": false, "reason": "the code has values of this run in its literals"}
		return nil
	}
	evidence, err := k.valuesDigest()
	if err != nil {
		return err
	}
	result, err := resultDigest(r)
	if err != nil {
		return err
	}
	l, err := k.tryCandidate(k.newLearned(evidence, result), r)
	if err != nil {
		return err
	}
	return k.updateLearned([]any{l.Code, string(l.State), l.valuesDigest}, func(now *Learned) *Learned {
		if now != nil && (now.State == LearnedDisabled || now.State == LearnedAccepted && now.Code == l.Code) {
			return nil
		}
		return l
	})
}

// tryCandidate returns what to store: the stored candidate if it has the result r for these
// values too, else the program that was generated for them. The candidate is accepted if its
// first result was another one: otherwise a program that always gives this result, and reads
// nothing, would be accepted as well.
func (k *codeWriting) tryCandidate(generated *Learned, r *Execution) (*Learned, error) {
	note := map[string]any{"kept": true, "state": string(LearnedCandidate)}
	k.notes["learning"] = note
	b := k.learned
	if b == nil || b.State != LearnedCandidate || b.resultDigest == "" || b.valuesDigest == generated.valuesDigest || k.hasRunValues(b.Code) {
		return generated, nil
	}
	same, err := k.sameResult(b.Code, r)
	switch {
	case err != nil:
		return nil, err
	case !same:
		return generated, nil
	case b.resultDigest == generated.resultDigest:
		note["reason"] = "both inputs have the same result, which does not show that the code reads them"
		return b, nil
	}
	b.State, b.Confirmed = LearnedAccepted, k.ctx.Info().Run
	note["state"] = string(b.State)
	return b, nil
}

// resultDigest identifies what code changed and chose. As for equalValues, 1 and 1.0 are equal.
func resultDigest(r *Execution) (string, error) {
	b, err := engine.AppendValue(nil, []any{r.Branch, texts(r.Delete), wholeFloatsAsIntegers(r.Updates)})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

func wholeFloatsAsIntegers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			out[name] = wholeFloatsAsIntegers(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = wholeFloatsAsIntegers(x)
		}
		return out
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	}
	return v
}

// hasRunValues reports whether the code has a value of this run among its literals.
func (k *codeWriting) hasRunValues(code string) bool {
	inPrompt := slices.Concat([]string{k.task()}, k.Branches, fileNames(k.Files))
	c := newRunValues(inPrompt, k.state, k.inputs, k.insights)
	return slices.ContainsFunc(literalsOf(code), c.contains)
}

// sameResult reports whether a candidate has the same result on this run's values as the
// code that was generated for them.
func (k *codeWriting) sameResult(code string, r *Execution) (bool, error) {
	as, err := k.execute(k.ctx, purposeConfirm, code, true)
	if err != nil {
		if endsAttempt(k.ctx, err) {
			return false, err
		}
		return false, nil
	}
	return as.Failure == nil && as.Branch == r.Branch && slices.Equal(as.Delete, r.Delete) && equalValues(as.Updates, r.Updates), nil
}

// equalValues compares the results of two programs; 1 and 1.0 are equal.
func equalValues(a, b engine.Value) bool {
	switch a := a.(type) {
	case map[string]any:
		o, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, o, func(x, y any) bool { return equalValues(x, y) })
	case []any:
		l, ok := b.([]any)
		return ok && slices.EqualFunc(a, l, func(x, y any) bool { return equalValues(x, y) })
	case int64:
		if f, ok := b.(float64); ok {
			return float64(a) == f
		}
	case float64:
		if n, ok := b.(int64); ok {
			return a == float64(n)
		}
	}
	return a == b
}

// updateLearned changes the stored code, as an effect and in one transaction; nil leaves it
// unchanged.
func (k *codeWriting) updateLearned(request []any, to func(now *Learned) *Learned) error {
	key, err := k.learnedKey()
	if err != nil {
		return err
	}
	_, err = k.ctx.Do(node.Effect{Name: "learn", Request: append([]any{key}, request...), ReadOnly: true, Do: func(c context.Context, _ string) (node.Outcome, error) {
		err := k.ctx.Cache().Change(c, key, func(v engine.Value, _ bool) (engine.Value, bool) {
			l := to(readLearned(v))
			if l == nil {
				return nil, false
			}
			return l.value(), true
		})
		return node.Outcome{}, cacheError("keep learned code", err)
	}})
	return err
}

func cacheError(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &engine.Error{Code: engine.CodeCache, Message: doing + ": " + err.Error()}
}
