package codegen

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
)

// Execution is the result of one execution of code, as recorded in the journal.
type Execution struct {
	// Updates and Delete are the changes to the state: whole values by key.
	Updates map[string]any
	Delete  []string
	// Branch is the branch that a decision chose.
	Branch  string
	Message string
	// Printed says that the update was printed.
	Printed bool
	// Stdout and Stderr are the output, without the line of the update.
	Stdout, Stderr string
	// Sandbox is the id of the sandbox, Micros the duration in microseconds.
	Sandbox string
	Micros  int64
	// Failure is the error of generated code, which is repaired instead of failing the
	// node.
	Failure *engine.Error
}

// The purposes of executions, which are part of the effect's name.
const (
	purposeRun     = "execute" // the result may become that of the node
	purposeAnalyse = "analyse" // the code only reads
	// purposeConfirm only compares results.
	purposeConfirm = "confirm"
)

// execute runs code as an effect. An error of the code fails the effect or, with repair, is
// its result, so that the following request depends on it even in a later attempt. An error
// of the sandbox always fails the effect. The known output of a failed execution is
// returned with the error.
func (j *Job) execute(ctx *node.Ctx, purpose, code string, repair bool) (*Execution, error) {
	v, err := ctx.Do(node.Effect{
		Uses: j.use(), Name: purpose, Request: []any{j.Language, j.Executor, code}, Unknown: node.UnknownRetry, ReadOnly: true,
		Do: func(c context.Context, key string) (node.Outcome, error) {
			j.effectStarted()
			r, err := j.run(c, ctx, purpose, code, key)
			var failed *sandbox.Error
			switch {
			case err == nil:
				return node.Outcome{Value: r.value()}, nil
			case !errors.As(err, &failed):
				return node.Outcome{}, err
			case repair && c.Err() == nil && isCodeFault(failed.Code):
				r.Failure = failed.Failure()
				return node.Outcome{Value: r.value()}, nil
			}
			return node.Outcome{Value: r.value()}, failed.Failure()
		},
	})
	if v == nil {
		return nil, err
	}
	r, unread := readExecution(v)
	if unread != nil {
		return nil, unread
	}
	return r, err
}

// run runs the code in a sandbox, and emits what it prints as live output of the effect
// with that key. It never returns nil.
func (j *Job) run(c context.Context, ctx *node.Ctx, purpose, code, key string) (*Execution, error) {
	out := &Execution{}
	x, err := j.executor(ctx.Executors())
	if err != nil {
		return out, err
	}
	job := j.sandboxJob(ctx, code)
	job.ReadOnly = purpose == purposeAnalyse
	job.Decision = j.Decision && !job.ReadOnly
	files, done, err := mountFiles(ctx, j.Files)
	if err != nil {
		return out, err
	}
	defer done()
	job.Files = files
	job.OnOutput = func(stdout, stderr string) { ctx.Emit(llm.Chunk{Effect: key, Stdout: stdout, Stderr: stderr}) }
	r, err := callExecutor(j.Breakers, x.Name(), func() (*sandbox.Result, error) { return x.Run(c, job) })
	if r != nil {
		*out = Execution{
			Updates: r.Set, Delete: r.Delete, Branch: r.Branch, Message: r.Message, Printed: r.Printed, Stdout: r.Stdout, Stderr: r.Stderr,
			Sandbox: r.Sandbox, Micros: r.Duration.Microseconds(),
		}
	}
	if err == nil && job.Decision && out.Branch == "" {
		err = &sandbox.Error{
			Code: engine.CodeBranchMissing, Message: "the code did not set branch_decision",
			Hint: "set context['branch_decision'] on every path through the code",
		}
	}
	return out, err
}

// isCodeFault reports whether an error was caused by the code, so that other code may avoid
// it.
func isCodeFault(code string) bool {
	switch code {
	case engine.CodeSandboxUnavailable, engine.CodeSandboxFailed, engine.CodeBreakerOpen:
		return false
	}
	return true
}

// value converts r to an effect's result. The output of the code is stored verbatim:
// nothing in it can become a handle.
func (r *Execution) value() engine.Value {
	set := r.Updates
	if set == nil {
		set = map[string]any{}
	}
	v := map[string]any{"set": set}
	put := func(name, text string) {
		if text != "" {
			v[name] = text
		}
	}
	put("branch", r.Branch)
	put("message", r.Message)
	put("stdout", r.Stdout)
	put("stderr", r.Stderr)
	put("sandbox", r.Sandbox)
	if len(r.Delete) > 0 {
		v["delete"] = texts(r.Delete)
	}
	if r.Printed {
		v["printed"] = true
	}
	if r.Micros > 0 {
		v["us"] = r.Micros
	}
	if f := r.Failure; f != nil {
		v["failed"] = map[string]any{"code": f.Code, "message": f.Message, "hint": f.Hint}
	}
	return v
}

// readExecution reads the output of value.
func readExecution(v engine.Value) (*Execution, error) {
	o, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the recorded result of an execution is a %T", v)
	}
	r := &Execution{
		Branch: textOf(o["branch"]), Message: textOf(o["message"]), Stdout: textOf(o["stdout"]),
		Stderr: textOf(o["stderr"]), Sandbox: textOf(o["sandbox"]),
	}
	r.Updates, _ = o["set"].(map[string]any)
	r.Micros, _ = o["us"].(int64)
	r.Printed, _ = o["printed"].(bool)
	deleted, _ := o["delete"].([]any)
	for _, k := range deleted {
		r.Delete = append(r.Delete, textOf(k))
	}
	if f, ok := o["failed"].(map[string]any); ok {
		r.Failure = &engine.Error{
			Code: textOf(f["code"]), Message: textOf(f["message"]), Hint: textOf(f["hint"]), Permanent: true,
		}
	}
	return r, nil
}

func textOf(v engine.Value) string {
	s, _ := v.(string)
	return s
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
