package sandbox

import (
	_ "embed" // the harness
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
)

//go:embed harness.py
var harness string

//go:embed check.py
var checker string

// HarnessPython returns a Python 3 program that defines run(job, send) and nothing else that an
// executor uses: job is a dict with the text code and the dicts context, inputs and files
// (paths by name), and send receives the report that ReadReport reads, as one line of
// ASCII. run returns when the code has ended, however it did, unless the process was
// killed.
//
// The code runs in the harness's own process and can forge the report, which gives it no
// more power than its access to the context. The channel only separates printed output from
// the report, for code without bad intent.
func HarnessPython() string { return harness }

// CheckPython returns a Python 3 program that defines check(job, send), which implements
// Executor.Check without running the code, and sends the report that ReadProblems reads.
func CheckPython() string { return checker }

// Report is a harness's report about the end of the code.
type Report struct {
	// Kind is "left", or why the code has no result: "syntax", "exception", "memory",
	// "exit" (it ended itself with an exit code) or "context" (it assigned that name).
	Kind      string             `json:"kind"`
	Message   string             `json:"message"`
	Traceback string             `json:"traceback"`
	Line      int                `json:"line"`
	Context   map[string]any     `json:"context"`
	Odd       []UnencodableValue `json:"odd"`
}

// ReadReport reads the report of a harness.
func ReadReport(text []byte) (*Report, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	r := &Report{}
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("read the report of the code's harness: %w", err)
	}
	return r, nil
}

// BuildResult computes the result of the job from the report and the output.
func (r *Report) BuildResult(job *Job, stdout, stderr string) (*Result, error) {
	failed := &Result{Stdout: stdout, Stderr: stderr}
	e := &Error{Message: r.Message, Traceback: r.Traceback, Line: r.Line}
	switch r.Kind {
	case "left":
		return BuildResult(job, &Outcome{Context: r.Context, Unencodable: r.Odd, Stdout: stdout, Stderr: stderr})
	case "syntax":
		e.Code = engine.CodeCodeInvalid
	case "exception", "exit":
		e.Code = engine.CodeCodeFailed
	case "memory":
		e.Code = engine.CodeCodeMemory
		e.Hint = "process less data at once, or increase the executor's limit"
	case "context":
		e.Code, e.Key = engine.CodeCodeValue, "context"
		e.Hint = "change context in place: context['key'] = value, context.update({...}), context.pop('key')"
	default:
		e.Code, e.Message = engine.CodeCodeKilled, "the code ended without a report"
	}
	if e.Line > 0 {
		e.Message = fmt.Sprintf("%s (line %d)", e.Message, e.Line)
	}
	return failed, e
}

// ReadProblems reads the report of the check.
func ReadProblems(text []byte) ([]Problem, error) {
	var list []struct {
		Line    int    `json:"line"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("read what the check of the code found: %w", err)
	}
	out := make([]Problem, 0, len(list))
	for _, p := range list {
		out = append(out, Problem(p))
	}
	return out, nil
}
