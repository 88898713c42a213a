package codegen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// reliable is how often learned code must have done what was asked to be used
// again, of the times it was used.
const reliable = 0.8

// learned is code that did what was asked, with how it fared.
type learned struct {
	code            string
	model           string
	uses, successes int64
}

func (l *learned) reliability() float64 {
	if l.uses == 0 {
		return 0
	}
	return float64(l.successes) / float64(l.uses)
}

func (l *learned) value() map[string]any {
	return map[string]any{"code": l.code, "model": l.model, "uses": l.uses, "successes": l.successes}
}

func readLearned(v engine.Value) *learned {
	o, _ := v.(map[string]any)
	l := &learned{code: textOf(o["code"]), model: textOf(o["model"])}
	l.uses, _ = o["uses"].(int64)
	l.successes, _ = o["successes"].(int64)
	if l.code == "" {
		return nil
	}
	return l
}

// key is what learned code is kept under: it is for the same task over values of
// the same names and types, in the same flow.
func (k *work) key() (string, error) {
	b, err := engine.AppendValue(nil, []any{
		k.Language, k.Decision, texts(k.Branches), strings.ToLower(k.task()), kinds(k.state), kinds(k.inputs), texts(fileNames(k.Files)),
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return "code/" + k.ctx.Info().Flow + "/" + hex.EncodeToString(sum[:]), nil
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

// known tries code that was learned, where there is some that is reliable. It
// returns nil where there is none, or where it failed.
func (k *work) known() (*Ran, error) {
	l, err := k.recall()
	if l == nil || err != nil || l.reliability() < reliable {
		return nil, err
	}
	k.cached, k.code, k.round, k.model = true, l.code, 1, l.model
	why := map[string]any{"cache": "hit", "uses": l.uses, "reliability": l.reliability()}
	for _, n := range []int{stepInput, stepData, stepGenerate, stepValidate} {
		s := engine.Step{Number: n, Attempt: 1, Status: engine.StepSkipped, Output: why}
		if n == stepGenerate {
			s.Code, s.Model = l.code, l.model
		}
		if err := k.record(s); err != nil {
			return nil, err
		}
	}
	r, err := k.try()
	if err != nil {
		return nil, err
	}
	return r, k.learn(r != nil)
}

// recall looks learned code up, as an effect: a replay finds what was there then.
func (k *work) recall() (*learned, error) {
	key, err := k.key()
	if err != nil {
		return nil, err
	}
	v, err := k.ctx.Do(node.Effect{Name: "recall", Request: key, Do: func(c context.Context, _ string) (node.Outcome, error) {
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

// learn keeps how the code fared that was used: code that is new is kept where it
// did what was asked, in the place of what was there.
func (k *work) learn(success bool) error {
	key, err := k.key()
	if err != nil {
		return err
	}
	_, err = k.ctx.Do(node.Effect{Name: "learn", Request: []any{key, k.code, success}, Do: func(c context.Context, _ string) (node.Outcome, error) {
		v, ok, err := k.ctx.Cache().Get(c, key)
		if err != nil {
			return node.Outcome{}, cacheError("look up learned code", err)
		}
		l := &learned{code: k.code, model: k.model}
		if before := readLearned(v); ok && before != nil && before.code == k.code {
			l = before
		} else if !success {
			return node.Outcome{}, nil
		}
		l.uses++
		if success {
			l.successes++
		}
		return node.Outcome{}, cacheError("keep learned code", k.ctx.Cache().Put(c, key, l.value(), 0))
	}})
	return err
}

func cacheError(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &engine.Error{Code: engine.CodeCache, Message: doing + ": " + err.Error()}
}
