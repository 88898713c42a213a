package starlark

import (
	"encoding/json"

	"github.com/weir-run/weir/sandbox"
)

// request is what the child is told, on its standard input.
type request struct {
	Check   bool              `json:"check,omitempty"`
	Code    string            `json:"code"`
	Context json.RawMessage   `json:"context"`
	Inputs  json.RawMessage   `json:"inputs"`
	Files   map[string][]byte `json:"files,omitempty"`
	Steps   uint64            `json:"steps"`
	Memory  int64             `json:"memory"` // bytes
}

// report is what the child says when it is done, on its descriptor 3: what
// sandbox.ReadReport reads, or in its place problems, or that it took too many
// steps.
type report struct {
	Kind      string                     `json:"kind"`
	Message   string                     `json:"message,omitempty"`
	Traceback string                     `json:"traceback,omitempty"`
	Line      int                        `json:"line,omitempty"`
	Context   json.RawMessage            `json:"context,omitempty"`
	Odd       []sandbox.UnencodableValue `json:"odd,omitempty"`
	Problems  []problem                  `json:"problems,omitempty"`
}

// Kinds of report beside those of sandbox.Report.
const (
	kindSteps    = "steps"
	kindProblems = "problems"
	kindFailed   = "failed" // the interpreter did, and not the code
)

// problem is a sandbox.Problem.
type problem struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}
