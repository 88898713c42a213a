package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/breaker"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/codegen"
)

// The bounds of the setting timeout of code, and what holds without it.
const (
	minCodeTime     = time.Second
	maxCodeTime     = 300 * time.Second
	defaultCodeTime = 60 * time.Second
)

// The languages of code.
const (
	python   = "python"
	starlark = "starlark"
)

// languageOf returns the language that an executor of Weir runs, "" for one that a program
// brings.
func languageOf(executor string) string {
	switch executor {
	case starlark:
		return starlark
	case "", python, "e2b":
		return python
	}
	return ""
}

// namePattern is what names of languages and executors match.
const namePattern = "^[a-z][a-z0-9_+.-]{0,62}$"

// CodeSettings say what code a node runs and how; they are the settings that all
// nodes which run code have in common.
type CodeSettings struct {
	Code     string              `json:"code"`
	Language string              `json:"language"`
	Executor string              `json:"executor"`
	Timeout  *duration           `json:"timeout"`
	Files    map[string]template `json:"files"`

	breakers *breaker.Set
}

// withCodeSettings adds the settings of CodeSettings.
func withCodeSettings(properties map[string]any) map[string]any {
	properties["code"] = settingSchema("string", "The code. Nothing in it is a template.")
	properties["language"] = map[string]any{
		"type": "string", "pattern": namePattern,
		"description": "What the code is written in: python, starlark, or the language of an executor that a program brings. Default: python, or that of the executor.",
	}
	properties["executor"] = map[string]any{
		"type": "string", "pattern": namePattern,
		"description": "What runs the code: python, starlark, e2b, or the name of an executor that a program brings. Default: the first that is offered for the language.",
	}
	properties["timeout"] = durationSchema("How long the code may run, from 1 to 300 seconds. Default: 60.")
	files := settingSchema("object", "Files that the code may read, by the name it calls them by: paths from the folder of the flow's file, or a template that gives one.")
	files["additionalProperties"] = templateSchema("string", "Where the file is.")
	properties["files"] = files
	return properties
}

// codeSettingsDoc are the rows of the settings of CodeSettings.
const codeSettingsDoc = "| `code` | the code; nothing in it is a template |\n" +
	"| `language` | `python`, `starlark` or a language of your own executors; without it that of `executor`, or `python` |\n" +
	"| `executor` | `python`, `starlark`, `e2b` or one of your own (`weir.Options.Executors`); without it the first that is offered for the language |\n" +
	"| `timeout` | how long it may run, from 1 to 300 seconds (60) |\n" +
	"| `files` | `{NAME: PATH}`: files it may read; a path is from the folder of the flow's file, or one `{{ }}` that gives a file |"

// codeDoc says what code finds and how it changes the state.
const codeDoc = "The code finds `context`, the state as the node found it; `inputs`, what is wired to the node, by port;\n" +
	"and `files`, the paths of the declared files by their names. What it does to `context` (assignments, changes deep\n" +
	"in a value, deletions) is the update of the state, unless the last line it prints that is a JSON object says it:\n" +
	"`{\"status\", \"context_updates\", \"message\"}`, or the update itself. A `status` of `error` fails the node with the message.\n" +
	"See [code nodes](../code-nodes.md)."

// checkCode reports what is wrong with the settings of code, as far as their
// schema cannot say it.
func checkCode(with map[string]any) []flow.Problem {
	var problems []flow.Problem
	if code, ok := with["code"].(string); ok && strings.TrimSpace(code) == "" {
		problems = append(problems, settingProblem("code", "there is no code"))
	}
	executor, _ := with["executor"].(string)
	language, given := with["language"].(string)
	if runs := languageOf(executor); executor != "" && given && runs != "" && language != runs {
		problems = append(problems, settingProblem("executor", "the executor %s runs %s, and the language is %s", executor, runs, language))
	}
	if given && with["prompt"] != nil && language != python && language != starlark {
		problems = append(problems, settingProblem("language", "the agents write python and starlark; expected one of these beside prompt"))
	}
	if v, given := with["timeout"]; given {
		d, err := durationOf(v)
		switch {
		case err != nil:
			problems = append(problems, settingProblem("timeout", "%v", err))
		case d < minCodeTime || d > maxCodeTime:
			problems = append(problems, settingProblem("timeout", "timeout must be from 1 to 300 seconds; got %v", d))
		}
	}
	for _, name := range namesOf(with["files"]) {
		if !isFileName(name) {
			problems = append(problems, settingProblem("files", "%q cannot be the name of a file: use letters, digits, dots, _ and -", name))
		}
	}
	return problems
}

// isFileName reports whether a file can be called so in a sandbox.
func isFileName(name string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._- ", r)
	}
	return name != "" && len(name) <= 200 && strings.Trim(name, ". ") != "" && !strings.ContainsFunc(name, other)
}

// codeKeys returns the settings that say how code is run.
func codeKeys() []string { return []string{"language", "executor", "timeout", "files"} }

// exactlyOne reports settings of which not exactly one is given.
func exactlyOne(with map[string]any, names ...string) []flow.Problem {
	var given []string
	for _, name := range names {
		if with[name] != nil {
			given = append(given, name)
		}
	}
	wanted := strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	switch len(given) {
	case 0:
		return []flow.Problem{settingProblem("", "%s is missing", wanted)}
	case 1:
		return nil
	}
	return []flow.Problem{settingProblem(given[len(given)-1], "%s are both given; expected one of %s", strings.Join(given, " and "), wanted)}
}

// notBeside reports settings that mean nothing together with what a node is made of.
func notBeside(with map[string]any, beside string, names ...string) []flow.Problem {
	var problems []flow.Problem
	for _, name := range names {
		if with[name] != nil {
			problems = append(problems, settingProblem(name, "%s means nothing beside %s", name, beside))
		}
	}
	return problems
}

// job returns what the settings say of one execution.
func (s *CodeSettings) job(ctx *node.Ctx) (*codegen.Job, error) {
	j := &codegen.Job{Language: s.Language, Executor: s.Executor, Timeout: defaultCodeTime, Breakers: s.breakers}
	if j.Language == "" {
		j.Language = languageOf(s.Executor)
	}
	if x := ctx.Executors().Get(s.Executor); x != nil && j.Language == "" {
		j.Language = x.Language()
	}
	if s.Timeout != nil {
		j.Timeout = s.Timeout.Duration
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		f := codegen.File{Name: name}
		if v, fixed := s.Files[name].literal(); fixed {
			f.Path = fmt.Sprint(v)
		} else {
			v, err := s.Files[name].value(ctx, "files."+name)
			if err != nil {
				return nil, err
			}
			if v == nil { // this run has no such file
				continue
			}
			f.Value = v
		}
		j.Files = append(j.Files, f)
	}
	return j, nil
}
