package codegen

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/node"
)

// The numbers and names of the steps of code nodes.
const (
	stepInput    = 1
	stepData     = 2
	stepGenerate = 3
	stepValidate = 4
	stepExecute  = 5
	stepOutput   = 6
)

// stepName returns the name of a step.
func stepName(number int) string {
	return [...]string{
		"", "input_analysis", "data_analysis", "code_generation", "code_validation", "execution", "output_validation",
	}[number]
}

// RunCode runs the code of a flow, writes its changes to the state and records it as a
// step. The branch of a decision must be one of Branches.
func (j *Job) RunCode(ctx *node.Ctx, code string) (*Execution, error) {
	step := j.executionStep(ctx, code, 1)
	r, err := j.execute(ctx, purposeRun, code, false)
	if err != nil && endsAttempt(ctx, err) {
		return nil, err
	}
	if err == nil {
		err = j.checkResult(ctx, r)
	}
	if err == nil {
		err = applyUpdate(ctx.State(), r)
	}
	completeStep(&step, r, err)
	if rec := ctx.Record(step); rec != nil && err == nil {
		err = rec
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// checkResult checks the result of the code against the node and the state.
func (j *Job) checkResult(ctx *node.Ctx, r *Execution) error {
	if j.Decision && !slices.Contains(j.Branches, r.Branch) {
		return &engine.Error{
			Code: engine.CodeBranch, Permanent: true,
			Message: "the code chose " + excerpt.Bytes(r.Branch, maxShown) + ", which is not one of the branches " + strings.Join(j.Branches, ", "),
			Hint:    "set context['branch_decision'] to one of the node's branches, or add the branch",
		}
	}
	for _, key := range sortedKeys(r.Updates) {
		if err := ctx.CheckState(key, r.Updates[key]); err != nil {
			return &engine.Error{
				Code: engine.CodeValue, Permanent: true, Message: fmt.Sprintf("state key %q: %v", key, err),
				Hint: "write a value that the key's schema under `state:` allows",
			}
		}
	}
	_, err := stateWrites(ctx.State(), r)
	return err
}

// executionStep returns the step of a starting execution.
func (j *Job) executionStep(ctx *node.Ctx, code string, attempt int) engine.Step {
	input := map[string]any{
		"language": j.Language, "context_keys": texts(ctx.State().Keys()), "inputs": texts(sortedKeys(ctx.Inputs())),
	}
	for _, f := range j.Files {
		input["files"] = append(listOf(input["files"]), f.Name)
	}
	return engine.Step{Number: stepExecute, Name: stepName(stepExecute), Attempt: attempt, Status: engine.StepSuccess, Input: input, Code: code}
}

// completeStep completes the step of an execution; r is nil if only the error is known.
func completeStep(s *engine.Step, r *Execution, err error) {
	if r != nil {
		s.Sandbox, s.Micros = r.Sandbox, r.Micros
		s.Output = outputOf(r)
	}
	if err != nil {
		s.Status, s.Error = engine.StepFailed, messageOf(err)
	}
}

// outputOf returns the result of an execution for its step.
func outputOf(r *Execution) map[string]any {
	out := map[string]any{}
	if r.Updates != nil {
		out["context_updates"] = r.Updates
	}
	for name, text := range map[string]string{"branch_decision": r.Branch, "message": r.Message, "stdout": r.Stdout, "stderr": r.Stderr} {
		if text != "" {
			out[name] = excerpt.Bytes(text, maxKept)
		}
	}
	if len(r.Delete) > 0 {
		out["deleted"] = texts(r.Delete)
	}
	return out
}

// endsAttempt reports whether an error must be returned unchanged, because it ends or
// suspends the attempt and does not concern the step.
func endsAttempt(ctx *node.Ctx, err error) bool {
	return errors.Is(err, node.ErrSuspended) || ctx.Err() != nil
}

// messageOf returns an error as text for a step.
func messageOf(err error) string {
	if e, ok := errors.AsType[*engine.Error](err); ok {
		first, more, _ := strings.Cut(strings.TrimSpace(e.Message), "\n")
		return strings.TrimSpace(first + " (" + e.Code + ")\n" + more)
	}
	return err.Error()
}
