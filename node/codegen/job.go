package codegen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
)

// Job is what a node says of the code it runs, whoever writes it.
type Job struct {
	// Language is that of the code. Executor runs it; "" is the first that the
	// process offers for the language.
	Language, Executor string
	// Timeout bounds one execution.
	Timeout time.Duration
	// Decision: the code decides between Branches.
	Decision bool
	Branches []string
	// Files are what the code may read, by the names it calls them by.
	Files []File
	// CircuitBreakers keep from what fails again and again; nil keeps from nothing.
	CircuitBreakers *CircuitBreakers

	// onEffect is told, where it is set, that an effect is done now and was not before.
	onEffect func()
}

// effectStarted notes that an effect is done now.
func (j *Job) effectStarted() {
	if j.onEffect != nil {
		j.onEffect()
	}
}

// executor finds what runs the job among those that the process offers.
func (j *Job) executor(set *sandbox.Set) (sandbox.Executor, error) {
	x := set.ForLanguage(j.Language)
	if j.Executor != "" {
		x = set.Get(j.Executor)
	}
	if x != nil && x.Language() == j.Language {
		return x, nil
	}
	wanted := "an executor for " + j.Language
	if j.Executor != "" {
		wanted = fmt.Sprintf("the executor %s for %s", j.Executor, j.Language)
	}
	offered := "none"
	if all := set.All(); len(all) > 0 {
		names := make([]string, len(all))
		for i, e := range all {
			names[i] = e.Name() + " (" + e.Language() + ")"
		}
		offered = strings.Join(names, ", ")
	}
	return nil, &engine.Error{
		Code: engine.CodeSandboxUnavailable, Permanent: true,
		Message: fmt.Sprintf("%s is not offered here; offered: %s", wanted, offered),
		Hint:    "`weir doctor` says which executors there are and what is missing for others; a program gives them as weir.Options.Executors",
	}
}

// sandboxJob is the job of one execution of code in a sandbox.
func (j *Job) sandboxJob(ctx *node.Ctx, code string) *sandbox.Job {
	return &sandbox.Job{
		Code: code, Context: withoutHandles(ctx.State().All()), Inputs: withoutHandles(ctx.Inputs()),
		Decision: j.Decision, Limits: sandbox.Limits{Time: j.Timeout},
	}
}

// withoutHandles are the values that code can be given: those without a handle in them.
func withoutHandles(values map[string]any) map[string]any {
	for name, v := range values {
		if holdsHandle(v) {
			delete(values, name)
		}
	}
	return values
}

func holdsHandle(v engine.Value) bool {
	switch t := v.(type) {
	case engine.Handle:
		return true
	case []any:
		return slices.ContainsFunc(t, holdsHandle)
	case map[string]any:
		for _, e := range t {
			if holdsHandle(e) {
				return true
			}
		}
	}
	return false
}
