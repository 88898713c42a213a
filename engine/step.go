package engine

import "strconv"

// Step is one step of a node on the way to its result, such as the work of one
// code-generation agent.
type Step struct {
	// Number is the agent's number and Name its name: 3, "code_generation".
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Attempt counts the agent's attempts, from 1.
	Attempt int `json:"attempt"`
	// Status is one of the StepStatus constants.
	Status string `json:"status"`
	Input  Value  `json:"input,omitempty"`
	Output Value  `json:"output,omitempty"`
	// Code is the code that was written or executed.
	Code string `json:"code,omitempty"`
	// Error is the reason of a failure, as text.
	Error string `json:"error,omitempty"`
	Model string `json:"model,omitempty"` // provider/model
	Usage *Usage `json:"usage,omitempty"`
	// Micros is the duration in microseconds.
	Micros int64 `json:"us,omitempty"`
	// Sandbox is the id of the sandbox that ran the code.
	Sandbox string `json:"sandbox,omitempty"`
}

// The outcomes of a step.
const (
	StepSuccess = "success"
	StepFailed  = "failed"
	StepSkipped = "skipped" // it was not needed
)

// Key distinguishes the step from the others of its node. The key of a failed step includes
// the node's attempt, because the next attempt may succeed.
func (s *Step) Key(attempt int) string {
	key := strconv.Itoa(s.Number) + "." + s.Name + "." + strconv.Itoa(s.Attempt) + "." + s.Status
	if s.Status == StepFailed {
		key += "." + strconv.Itoa(attempt)
	}
	return key
}
