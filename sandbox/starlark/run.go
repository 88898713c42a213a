package starlark

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/lib/json"
	"go.starlark.net/lib/math"
	"go.starlark.net/resolve"
	lang "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// fileName is the name of the code in tracebacks.
const fileName = "code"

// options allow the statements that short Python scripts use.
func options() *syntax.FileOptions {
	return &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}
}

// environment has the names that are predeclared for the code.
type environment struct {
	names   lang.StringDict
	context *lang.Dict
}

func newEnvironment(r *request) (*environment, error) {
	var dicts [2]*lang.Dict
	for i, raw := range [][]byte{r.Context, r.Inputs} {
		v, err := engine.ParseValue(raw)
		if err != nil {
			return nil, err
		}
		m, _ := v.(map[string]any)
		if dicts[i], err = toDict(m); err != nil {
			return nil, err
		}
	}
	files := fileValues(r.Files)
	files.Freeze()
	return &environment{context: dicts[0], names: lang.StringDict{
		"context": dicts[0], "inputs": dicts[1], "files": files, "json": json.Module, "math": math.Module,
	}}, nil
}

// execute runs the code; say receives each line that it prints.
func execute(r *request, say func(line string)) *report {
	w, err := newEnvironment(r)
	if err != nil {
		return &report{Kind: kindFailed, Message: err.Error()}
	}
	thread := &lang.Thread{Name: fileName, Print: func(_ *lang.Thread, line string) { say(line) }}
	thread.SetMaxExecutionSteps(r.Steps)
	exhausted := false
	thread.OnMaxSteps = func(t *lang.Thread) {
		exhausted = true
		t.Cancel("too many steps")
	}
	file, program, err := lang.SourceProgramOptions(options(), fileName, r.Code, w.names.Has)
	if err == nil {
		if line := contextAssignment(file); line > 0 {
			return &report{Kind: "context", Message: "the code assigns another value to the name context", Line: line}
		}
		_, err = program.Init(thread, w.names)
	}
	switch {
	case exhausted:
		rep := faultOf(err)
		rep.Kind, rep.Message = kindSteps, fmt.Sprintf("the code took more than %d steps", r.Steps)
		return rep
	case err != nil:
		return faultOf(err)
	}
	return w.contextReport()
}

// contextAssignment returns the line on which the code assigns the name context, 0 for none. The update is computed
// from the dict that the code receives; a new dict under the name would delete all keys that it does not have.
func contextAssignment(f *syntax.File) int {
	module, ok := f.Module.(*resolve.Module)
	if !ok {
		return 0
	}
	for _, b := range module.Globals {
		if b.First != nil && b.First.Name == "context" {
			return int(b.First.NamePos.Line)
		}
	}
	return 0
}

// contextReport reports the context that the code left.
func (w *environment) contextReport() *report {
	final := w.context
	rep, values := &report{Kind: "left"}, make(map[string]any, final.Len())
	for _, item := range final.Items() {
		key, ok := lang.AsString(item[0])
		if !ok {
			why := "has a key that is " + withArticle(item[0].Type()) + " and not a text"
			rep.Odd = append(rep.Odd, sandbox.UnencodableValue{Key: item[0].String(), Why: why})
			continue
		}
		v, err := fromStarlark(item[1], 0)
		if err != nil {
			rep.Odd = append(rep.Odd, unencodableValue(key, err))
			continue
		}
		values[key] = v
	}
	raw, err := engine.AppendValue(nil, values)
	if err != nil {
		return &report{Kind: kindFailed, Message: err.Error()}
	}
	rep.Context = raw
	return rep
}

// faultOf converts an error of the interpreter.
func faultOf(err error) *report {
	if e, ok := errors.AsType[*lang.EvalError](err); ok {
		rep := &report{Kind: "exception", Message: e.Msg, Traceback: e.Backtrace()}
		for _, frame := range e.CallStack {
			if frame.Pos.Filename() == fileName && frame.Pos.Line > 0 {
				rep.Line = int(frame.Pos.Line)
			}
		}
		return rep
	}
	problems := problemsOf(err)
	if len(problems) == 0 {
		return &report{Kind: "exception", Message: err.Error()}
	}
	lines := []string{problems[0].Message} // its line is the report's
	for _, p := range problems[1:] {
		lines = append(lines, fmt.Sprintf("line %d: %s", p.Line, p.Message))
	}
	return &report{Kind: "syntax", Message: strings.Join(lines, "; "), Line: problems[0].Line}
}

// problemsOf converts the errors of code that cannot be run.
func problemsOf(err error) []problem {
	if e, ok := errors.AsType[syntax.Error](err); ok {
		return []problem{{int(e.Pos.Line), e.Msg}}
	}
	var list []problem
	if es, ok := errors.AsType[resolve.ErrorList](err); ok {
		for _, e := range es {
			list = append(list, problem{int(e.Pos.Line), e.Msg})
		}
	}
	return list
}
