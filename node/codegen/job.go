package codegen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/breaker"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
)

// Job describes the code that a node runs, written by a person or a model.
type Job struct {
	// Language is the language of the code. Executor runs it; "" means the first executor
	// of the process for the language.
	Language, Executor string
	// Timeout limits one execution.
	Timeout time.Duration
	// Decision says that the code chooses one of Branches.
	Decision bool
	Branches []string
	// Files are the files that the code may read, with their names in the code.
	Files []File
	// Breakers stop calls of executors that fail repeatedly; nil means none.
	Breakers *breaker.Set

	// onEffect, if set, is called when an effect completes that was not recorded before.
	onEffect func()
}

// effectStarted reports a new effect to onEffect.
func (j *Job) effectStarted() {
	if j.onEffect != nil {
		j.onEffect()
	}
}

// use returns what an execution uses: the executor as grants name it, or a file of this machine,
// which is never granted.
func (j *Job) use() node.Use {
	for _, f := range j.Files {
		object, _ := f.Value.(map[string]any)
		if _, text := f.Value.(string); text || f.Path != "" || object["path"] != nil {
			return node.Use{Kind: node.UseFile, Name: f.Name}
		}
	}
	return node.Use{Kind: node.UseExecutor, Name: cmp.Or(j.Executor, j.Language)}
}

// executor finds the executor of the job.
func (j *Job) executor(set *sandbox.Set) (sandbox.Executor, error) {
	x := set.ForLanguage(j.Language)
	if j.Executor != "" {
		x = set.Get(j.Executor)
	}
	if x != nil && x.Language() == j.Language {
		return x, nil
	}
	wanted := "an executor for " + j.Language
	switch {
	case j.Executor != "" && j.Language == "":
		wanted = "the executor " + j.Executor
	case j.Executor != "":
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
		Hint:    "`weir doctor` lists the executors and what is missing for others; programs set them in weir.Options.Executors",
	}
}

// sandboxJob returns the job of one execution in a sandbox.
func (j *Job) sandboxJob(ctx *node.Ctx, code string) *sandbox.Job {
	return &sandbox.Job{
		Code: code, Context: withoutHandles(ctx.State().All()), Inputs: withoutHandles(ctx.Inputs()),
		Decision: j.Decision, Limits: sandbox.Limits{Time: j.Timeout},
	}
}

// withoutHandles returns the values that can be passed to code: those without handles.
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
