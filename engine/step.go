package engine

import "strconv"

// Step is one step of those a node takes to its result, as the agents that write
// its code do.
type Step struct {
	// Number is the agent's, Name what it is called: 3, "code_generation".
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Attempt counts how often the agent was at work, from 1.
	Attempt int `json:"attempt"`
	// Status is one of the StepStatus constants.
	Status string `json:"status"`
	Input  Value  `json:"input,omitempty"`
	Output Value  `json:"output,omitempty"`
	// Code is what was written, or run.
	Code string `json:"code,omitempty"`
	// Error is why it failed, as text.
	Error string `json:"error,omitempty"`
	Model string `json:"model,omitempty"` // provider/model
	Usage *Usage `json:"usage,omitempty"`
	// Micros is how long it took, in microseconds.
	Micros int64 `json:"us,omitempty"`
	// Sandbox is the id of the sandbox that ran the code.
	Sandbox string `json:"sandbox,omitempty"`
}

// What became of a step.
const (
	StepSuccess = "success"
	StepFailed  = "failed"
	StepSkipped = "skipped" // it was not needed
)

// Key tells the step from the others of its node. A failed one is of the node's
// attempt, since the next may have it succeed.
func (s *Step) Key(attempt int) string {
	key := strconv.Itoa(s.Number) + "." + s.Name + "." + strconv.Itoa(s.Attempt) + "." + s.Status
	if s.Status == StepFailed {
		key += "." + strconv.Itoa(attempt)
	}
	return key
}
