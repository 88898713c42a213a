package starlark

import (
	"encoding/json"

	"github.com/weir-run/weir/sandbox"
)

// request is the input of the child, on its standard input.
type request struct {
	Check   bool              `json:"check,omitempty"`
	Code    string            `json:"code"`
	Context json.RawMessage   `json:"context"`
	Inputs  json.RawMessage   `json:"inputs"`
	Files   map[string][]byte `json:"files,omitempty"`
	Steps   uint64            `json:"steps"`
	Memory  int64             `json:"memory"` // bytes
}

// report is the result of the child, on descriptor 3: the format of sandbox.ReadReport, or problems, or an exceeded
// step limit.
type report struct {
	Kind      string                     `json:"kind"`
	Message   string                     `json:"message,omitempty"`
	Traceback string                     `json:"traceback,omitempty"`
	Line      int                        `json:"line,omitempty"`
	Context   json.RawMessage            `json:"context,omitempty"`
	Odd       []sandbox.UnencodableValue `json:"odd,omitempty"`
	Problems  []problem                  `json:"problems,omitempty"`
}

// Kinds of report besides those of sandbox.Report.
const (
	kindSteps    = "steps"
	kindProblems = "problems"
	kindFailed   = "failed" // a fault of the interpreter, not of the code
)

// problem is a sandbox.Problem.
type problem struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}
