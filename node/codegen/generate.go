package codegen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
)

// generate has a model generate the code.
func (k *codeWriting) generate() (ok bool, err error) {
	s := engine.Step{Number: stepGenerate, Attempt: k.round, Status: engine.StepSuccess}
	more := map[string]any{"insights": k.insights}
	if len(k.rejections) > 0 {
		more["error_history"] = k.errorHistory()
	}
	s.Input = k.stepInput(more)
	a, wrong, err := k.ask(stepGenerate, generateSystem(&k.Job), k.generatePrompt(), nil)
	a.addTo(&s)
	if err != nil {
		return false, k.recordFailed(s, err)
	}
	k.code = codeIn(a.text, k.Language)
	s.Code = k.code
	if wrong == "" && k.code == "" {
		wrong = "the answer holds no code"
	}
	found := map[string]any{"characters": int64(len(k.code))}
	if len(a.calls) > 0 {
		found["tool_calls"] = a.calls
	}
	s.Output = found
	k.notes[stepName(stepGenerate)] = map[string]any{"model": a.model, "tool_calls": int64(len(a.calls))}
	if wrong != "" {
		s.Status, s.Error = engine.StepFailed, wrong
		k.reject(stepGenerate, wrong)
	}
	return wrong == "", k.record(s)
}

// problems returns the problems that the executor finds in the code, as text, and the
// duration in microseconds.
func (k *codeWriting) problems() (list []string, micros int64, err error) {
	v, err := k.ctx.Do(node.Effect{
		Uses: k.use(), Name: "check", Request: []any{k.Language, k.Executor, k.code}, Unknown: node.UnknownRetry, ReadOnly: true,
		Do: func(c context.Context, _ string) (node.Outcome, error) {
			k.effectStarted()
			x, err := k.executor(k.ctx.Executors())
			if err != nil {
				return node.Outcome{}, err
			}
			begin := time.Now()
			found, err := callExecutor(k.Breakers, x.Name(), func() ([]sandbox.Problem, error) {
				return x.Check(c, k.sandboxJob(k.ctx, k.code))
			})
			if failed, ok := errors.AsType[*sandbox.Error](err); ok {
				err = failed.Failure()
			}
			if err != nil {
				return node.Outcome{}, err
			}
			out := make([]any, len(found))
			for i, p := range found {
				out[i] = problemText(p)
			}
			return node.Outcome{Value: map[string]any{"problems": out, "us": time.Since(begin).Microseconds()}}, nil
		},
	})
	if err != nil {
		return nil, 0, err
	}
	o, _ := v.(map[string]any)
	for _, p := range listOf(o["problems"]) {
		list = append(list, textOf(p))
	}
	micros, _ = o["us"].(int64)
	return list, micros, nil
}

func problemText(p sandbox.Problem) string {
	if p.Line > 0 {
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return p.Message
}

// err returns the code's own failure, nil if there is none.
func (r *Execution) err() error {
	if r.Failure == nil {
		return nil
	}
	return r.Failure
}

func said(text string) *convo.Message { return &convo.Message{Role: convo.User, Text: text} }

func joined(list []string) string { return strings.Join(list, "; ") }

func orNone(s string) string {
	if s == "" {
		return "(nothing in particular)"
	}
	return s
}
