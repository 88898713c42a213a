package codegen

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
)

// probe finds out whether there is anything to run code with, before a model is
// paid to write some.
func (k *work) probe() error {
	_, err := k.ctx.Do(node.Effect{
		Name: "probe", Request: []any{k.Language, k.Executor},
		Do: func(c context.Context, _ string) (node.Outcome, error) {
			x, err := k.executor(k.ctx.Executors())
			if err == nil {
				err = x.Probe(c)
			}
			if failed, ok := errors.AsType[*sandbox.Error](err); ok {
				err = failed.Failure()
			}
			return node.Outcome{}, err
		},
	})
	return err
}

// analyse has the input looked at and, where that is said to be needed, the data:
// by code that only reads.
func (k *work) analyse() error {
	needed, hint, err := k.analyseInput()
	if err != nil {
		return err
	}
	if !needed {
		k.notes[stepName(stepData)] = map[string]any{"skipped": "not needed"}
		return k.record(engine.Step{
			Number: stepData, Attempt: k.round + 1, Status: engine.StepSkipped, Output: map[string]any{"reason": "input_analysis: not needed"},
		})
	}
	return k.analyseData(hint)
}

// analyseInput asks whether the data has to be looked at. Without a usable answer
// it has.
func (k *work) analyseInput() (needed bool, hint string, err error) {
	s := engine.Step{Number: stepInput, Attempt: k.round + 1, Status: engine.StepSuccess, Input: k.given(nil)}
	a, wrong, err := k.ask(stepInput, inputSystem, k.situation(), inputSchema(), "needs_analysis")
	a.on(&s)
	if err != nil {
		return false, "", k.hard(s, err)
	}
	o := a.object
	needed = true
	if v, ok := o["needs_analysis"].(bool); ok {
		needed = v
	}
	found := map[string]any{"needs_analysis": needed}
	for _, name := range []string{"complexity", "reason", "hint"} {
		if t := textOf(o[name]); t != "" {
			found[name] = t
		}
	}
	if s.Output = found; wrong != "" {
		s.Status, s.Error = engine.StepFailed, wrong
	}
	k.notes[stepName(stepInput)] = found
	return needed, textOf(o["hint"]), k.record(s)
}

// analyseData has code written that looks at the data, and runs it. What it does
// to the context is dropped; what it prints are insights. Where it comes to nothing the work
// goes on without.
func (k *work) analyseData(hint string) error {
	s := engine.Step{Number: stepData, Attempt: k.round + 1, Status: engine.StepSuccess, Input: k.given(map[string]any{"hint": hint})}
	a, wrong, err := k.ask(stepData, dataSystem(k.Language), k.situation()+"\n\nWhat to find out: "+orNone(hint), nil)
	a.on(&s)
	if err != nil {
		return k.hard(s, err)
	}
	s.Code = codeIn(a.text, k.Language)
	if wrong == "" && s.Code == "" {
		wrong = "the answer holds no code"
	}
	if wrong == "" {
		r, err := k.execute(k.ctx, analyses, s.Code, true)
		if err != nil {
			ended(&s, r, err)
			return k.hard(s, err)
		}
		s.Sandbox, s.Micros = r.Sandbox, s.Micros+r.Micros
		if r.Failure != nil {
			wrong = messageOf(r.Failure)
		} else {
			k.insights = insightsOf(r)
			s.Output = map[string]any{"insights": k.insights}
		}
	}
	found := map[string]any{"insights": k.insights}
	if wrong != "" {
		s.Status, s.Error = engine.StepFailed, wrong
		found["error"] = wrong
	}
	k.notes[stepName(stepData)] = found
	return k.record(s)
}

// insightsOf is what code that looked at data has to say: the object it printed,
// else all that it printed.
func insightsOf(r *Ran) engine.Value {
	if r.Printed && len(r.Set) > 0 {
		if len(jsonText(r.Set, nil, maxKept+1)) <= maxKept {
			return r.Set
		}
		return jsonText(r.Set, nil, maxKept)
	}
	if r.Message != "" {
		return shorten(r.Message, maxKept)
	}
	return shorten(r.Stdout, maxKept)
}

// given is the input of an agent's step.
func (k *work) given(more map[string]any) map[string]any {
	in := map[string]any{
		"task": k.task(), "context_keys": texts(sortedKeys(k.state)), "inputs": texts(sortedKeys(k.inputs)),
	}
	for name, v := range more {
		if v != nil && v != "" {
			in[name] = v
		}
	}
	return in
}

// check has the executor look at the code, without running it.
func (k *work) check() (ok bool, err error) {
	s := engine.Step{Number: stepValidate, Attempt: k.round, Status: engine.StepSuccess, Code: k.code}
	problems, micros, err := k.problems()
	if err != nil {
		return false, k.hard(s, err)
	}
	s.Micros = micros
	s.Output = map[string]any{"valid": len(problems) == 0, "errors": texts(problems)}
	k.notes[stepName(stepValidate)] = s.Output
	if len(problems) > 0 {
		s.Status, s.Error = engine.StepFailed, joined(problems)
		k.refuse(stepValidate, s.Error)
	}
	return len(problems) == 0, k.record(s)
}

// run runs the code. It returns nil where the code failed.
func (k *work) run() (*Ran, error) {
	s := k.execution(k.ctx, k.code, k.round)
	r, err := k.execute(k.ctx, runs, k.code, true)
	if err != nil {
		ended(&s, r, err)
		return nil, k.hard(s, err)
	}
	if err = r.err(); err == nil {
		err = k.fits(k.ctx, r)
	}
	ended(&s, r, err)
	if err != nil {
		why := messageOf(err)
		if stderr := k.hidden(r.Stderr); stderr != "" {
			why += "\nstderr: " + shorten(stderr, maxShown)
		}
		k.refuse(stepExecute, why)
		return nil, k.record(s)
	}
	return r, k.record(s)
}

// judge asks whether what the code did is what was asked for.
func (k *work) judge(r *Ran) (ok bool, err error) {
	changes := append(sortedKeys(r.Set), r.Delete...)
	s := engine.Step{
		Number: stepOutput, Attempt: k.round, Status: engine.StepSuccess,
		Input: k.given(map[string]any{"changes": texts(changes), "branch_decision": r.Branch}),
	}
	a, wrong, err := k.ask(stepOutput, outputSystem, k.outcome(r), outputSchema(), verdictNames()...)
	a.on(&s)
	if err != nil {
		return false, k.hard(s, err)
	}
	o := a.object
	valid, said := verdict(o)
	if !said && wrong == "" {
		wrong = "the answer does not say whether the output is valid: " + shorten(a.text, maxShown)
	}
	found := map[string]any{"valid": valid, "changes": texts(changes)}
	if reason := textOf(o["reason"]); reason != "" {
		found["reason"] = reason
	}
	s.Output = found
	k.notes[stepName(stepOutput)] = found
	if valid && wrong == "" {
		return true, k.record(s)
	}
	if wrong == "" {
		wrong = "the output is not what was asked for"
		if reason := textOf(o["reason"]); reason != "" {
			wrong += ": " + reason
		}
	}
	s.Status, s.Error = engine.StepFailed, wrong
	k.refuse(stepOutput, wrong)
	return false, k.record(s)
}

// verdict reads what a model says of an output, under the names that models give it.
func verdict(o map[string]any) (valid, said bool) {
	for _, name := range verdictNames() {
		if v, ok := o[name].(bool); ok {
			return v, true
		}
	}
	return false, false
}

// verdictNames are the names under which models say whether an output is valid.
func verdictNames() []string { return []string{"valid", "is_valid", "task_completed", "success", "ok"} }
