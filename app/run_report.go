package app

import (
	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
)

// RunReport is the state of a run as `weir run --json` prints it. All keys are always
// present.
type RunReport struct {
	Run        string        `json:"run"`
	Status     string        `json:"status"`
	Outputs    engine.Values `json:"outputs"`
	Absent     engine.Values `json:"absent"` // declared outputs without a value, and why
	Interrupts []Interrupt   `json:"interrupts"`
	Usage      Usage         `json:"usage"`
	Error      *engine.Error `json:"error"`
	// Truncated lists the values that the answer of a server leaves out because of their size; nil if it has all.
	Truncated []TruncatedValue `json:"truncated,omitempty"`
}

// TruncatedValue is a value of which an answer of a server has no more than the beginning.
type TruncatedValue struct {
	Place   string `json:"place" doc:"Where in the answer the value belongs, as a JSON Pointer. A text of a message is its excerpt there; other values are null or missing."`
	Size    int    `json:"size" doc:"Bytes: of the text or data of a message, of the JSON of any other value"`
	Excerpt string `json:"excerpt" doc:"The beginning; empty for data that is no text"`
	URL     string `json:"url" doc:"GET it for the whole value, or with the header Range for a part of it"`
}

// Interrupt is a question or event that a paused run waits for.
type Interrupt struct {
	ID     string         `json:"id"`
	Node   string         `json:"node"`
	Prompt string         `json:"prompt"`
	Schema map[string]any `json:"schema"` // null accepts any text
	Kind   string         `json:"kind"`   // an engine.InterruptKind
	// Due is Unix time in milliseconds: when the wait ends without an answer; 0 is never.
	Due int64 `json:"due,omitempty"`
}

// Usage is an engine.Usage with all keys present, save Estimated where it is 0. Cost is in
// millionths of a US dollar. Estimated is the number of Calls that are charged at an
// estimate, because the vendor did not report their usage.
type Usage struct {
	Calls     int   `json:"calls"`
	Input     int   `json:"input"`
	Cached    int   `json:"cached"`
	Output    int   `json:"output"`
	Reasoning int   `json:"reasoning"`
	Cost      int64 `json:"cost"`
	Estimated int   `json:"estimated,omitempty"`
}

// RunReportOf returns the report of a result.
func RunReportOf(r weir.Result) RunReport {
	return RunReport{
		Run: r.Run, Status: r.Status.String(), Outputs: append(engine.Values{}, r.Outputs...), Absent: append(engine.Values{}, r.Absent...),
		Interrupts: InterruptsOf(r.Interrupts), Usage: UsageOf(r.Usage), Error: r.Error,
	}
}

// InterruptsOf returns the interrupts for a report; never nil.
func InterruptsOf(list []engine.Interrupt) []Interrupt {
	out := make([]Interrupt, 0, len(list))
	for _, i := range list {
		out = append(out, Interrupt{ID: i.ID, Node: history.NodeOfInterrupt(i.ID), Prompt: i.Prompt, Schema: i.Schema, Kind: string(i.Kind), Due: i.Due})
	}
	return out
}

// UsageOf returns a usage for a report.
func UsageOf(u engine.Usage) Usage {
	return Usage{Calls: u.Calls, Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning, Cost: u.CostMicros, Estimated: u.Estimated}
}
