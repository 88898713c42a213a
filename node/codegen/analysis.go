package codegen

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
)

// checkExecutor checks that code can be executed before a model is paid to write some.
func (k *codeWriting) checkExecutor() error {
	_, err := k.ctx.Do(node.Effect{
		Uses: k.use(), Name: "probe", Request: []any{k.Language, k.Executor}, ReadOnly: true,
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

// analyseAll analyses the inputs and, if required, the data with code that only reads.
func (k *codeWriting) analyseAll() error {
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

// analyseInput asks whether the data must be analysed. Without a usable answer it must.
func (k *codeWriting) analyseInput() (needed bool, hint string, err error) {
	s := engine.Step{Number: stepInput, Attempt: k.round + 1, Status: engine.StepSuccess, Input: k.stepInput(nil)}
	a, wrong, err := k.ask(stepInput, inputSystem, k.taskPrompt(), inputSchema(), "needs_analysis")
	a.addTo(&s)
	if err != nil {
		return false, "", k.recordFailed(s, err)
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

// analyseData generates and runs code that examines the data. Its changes to the context
// are discarded; its output is the insights. If it fails, the work continues without
// insights.
func (k *codeWriting) analyseData(hint string) error {
	s := engine.Step{Number: stepData, Attempt: k.round + 1, Status: engine.StepSuccess, Input: k.stepInput(map[string]any{"hint": hint})}
	a, wrong, err := k.ask(stepData, dataSystem(k.Language), k.taskPrompt()+"\n\nWhat to find out: "+orNone(hint), nil)
	a.addTo(&s)
	if err != nil {
		return k.recordFailed(s, err)
	}
	s.Code = codeIn(a.text, k.Language)
	if wrong == "" && s.Code == "" {
		wrong = "the answer holds no code"
	}
	if wrong == "" {
		r, err := k.execute(k.ctx, purposeAnalyse, s.Code, true)
		if err != nil {
			completeStep(&s, r, err)
			return k.recordFailed(s, err)
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

// insightsOf returns the insights of data analysis code: the object that it printed, or
// else its whole output.
func insightsOf(r *Execution) engine.Value {
	if r.Printed && len(r.Updates) > 0 {
		if len(jsonText(r.Updates, nil, maxKept+1)) <= maxKept {
			return r.Updates
		}
		return jsonText(r.Updates, nil, maxKept)
	}
	if r.Message != "" {
		return excerpt.Bytes(r.Message, maxKept)
	}
	return excerpt.Bytes(r.Stdout, maxKept)
}

// stepInput returns the input of an agent's step.
func (k *codeWriting) stepInput(more map[string]any) map[string]any {
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

// validate checks the code with the executor, without running it.
func (k *codeWriting) validate() (ok bool, err error) {
	s := engine.Step{Number: stepValidate, Attempt: k.round, Status: engine.StepSuccess, Code: k.code}
	problems, micros, err := k.problems()
	if err != nil {
		return false, k.recordFailed(s, err)
	}
	s.Micros = micros
	s.Output = map[string]any{"valid": len(problems) == 0, "errors": texts(problems)}
	k.notes[stepName(stepValidate)] = s.Output
	if len(problems) > 0 {
		s.Status, s.Error = engine.StepFailed, joined(problems)
		k.reject(stepValidate, s.Error)
	}
	return len(problems) == 0, k.record(s)
}

// run runs the code. It returns nil if the code failed.
func (k *codeWriting) run() (*Execution, error) {
	s := k.executionStep(k.ctx, k.code, k.round)
	r, err := k.execute(k.ctx, purposeRun, k.code, true)
	if err != nil {
		completeStep(&s, r, err)
		return nil, k.recordFailed(s, err)
	}
	if err = r.err(); err == nil {
		err = k.checkResult(k.ctx, r)
	}
	completeStep(&s, r, err)
	if err != nil {
		why := messageOf(err)
		if stderr := k.hidden(r.Stderr); stderr != "" {
			why += "\nstderr: " + excerpt.Bytes(stderr, maxShown)
		}
		k.reject(stepExecute, why)
		return nil, k.record(s)
	}
	return r, k.record(s)
}

// validateOutput asks whether the result of the code fulfils the task.
func (k *codeWriting) validateOutput(r *Execution) (ok bool, err error) {
	changes := append(sortedKeys(r.Updates), r.Delete...)
	s := engine.Step{
		Number: stepOutput, Attempt: k.round, Status: engine.StepSuccess,
		Input: k.stepInput(map[string]any{"changes": texts(changes), "branch_decision": r.Branch}),
	}
	a, wrong, err := k.ask(stepOutput, outputSystem, k.validatePrompt(r), outputSchema(), verdictNames()...)
	a.addTo(&s)
	if err != nil {
		return false, k.recordFailed(s, err)
	}
	o := a.object
	valid, said := parseVerdict(o)
	if !said && wrong == "" {
		wrong = "the answer does not say whether the output is valid: " + excerpt.Bytes(a.text, maxShown)
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
	k.reject(stepOutput, wrong)
	return false, k.record(s)
}

// parseVerdict reads a model's verdict on an output, under any of the names that models
// use.
func parseVerdict(o map[string]any) (valid, said bool) {
	for _, name := range verdictNames() {
		if v, ok := o[name].(bool); ok {
			return v, true
		}
	}
	return false, false
}

// verdictNames returns the names that models use for the validity of an output.
func verdictNames() []string { return []string{"valid", "is_valid", "task_completed", "success", "ok"} }
