package app

import (
	"encoding/json"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
)

// WorkRow is an attempt of a node as `weir show --chain --json` prints it, in the
// words of the view chain_of_work.
type WorkRow struct {
	Execution string          `json:"execution_id"`
	Node      string          `json:"node_id"`
	Type      string          `json:"node_type"`
	Code      string          `json:"code_executed"`
	Input     json.RawMessage `json:"input_context"`
	Output    json.RawMessage `json:"output_result"` // null where it has not ended
	Took      float64         `json:"execution_time"`
	Status    string          `json:"status"`
	Metadata  json.RawMessage `json:"ai_metadata"`
	Seq       int             `json:"seq"`
	Attempt   int             `json:"attempt"`
	Started   time.Time       `json:"started"`
	Ended     *time.Time      `json:"ended"`
	Error     *engine.Error   `json:"error"`
	Usage     Usage           `json:"usage"`
	Steps     []WorkStepRow   `json:"steps"`
}

// WorkStepRow is a step in it, in the words of the view chain_of_work_step.
type WorkStepRow struct {
	Sequence int             `json:"sequence"`
	Number   int             `json:"step_number"`
	Attempt  int             `json:"attempt_number"`
	Agent    string          `json:"agent_name"`
	Input    json.RawMessage `json:"input_data"`
	Output   json.RawMessage `json:"output_data"`
	Code     string          `json:"generated_code"`
	Status   string          `json:"status"`
	Error    string          `json:"error_message"`
	Took     float64         `json:"execution_time_ms"`
	Model    string          `json:"model_used"`
	In       int             `json:"tokens_input"`
	Out      int             `json:"tokens_output"`
	Cost     float64         `json:"cost_usd"`
	// Estimated is how many calls are charged at an estimate.
	Estimated int    `json:"calls_estimated"`
	Sandbox   string `json:"sandbox_id"`
}

// WorkRowOf returns an attempt of the chain of work for a report.
func WorkRowOf(run string, w *history.Work) (WorkRow, error) {
	r := WorkRow{
		Execution: run, Node: w.Node, Type: w.Type, Code: w.Code, Took: Millis(w.Took), Status: w.Status, Seq: w.Seq, Attempt: w.Attempt,
		Started: w.Started, Error: w.Error, Usage: UsageOf(w.Usage), Steps: []WorkStepRow{},
	}
	values := []struct {
		to   *json.RawMessage
		from engine.Value
	}{{&r.Input, StateMap(w.Before)}, {&r.Metadata, w.Metadata}}
	if !w.Ended.IsZero() {
		r.Ended = &w.Ended
		values = append(values, struct {
			to   *json.RawMessage
			from engine.Value
		}{&r.Output, StateMap(w.After)})
	}
	for i := range w.Steps {
		s := &w.Steps[i]
		t := WorkStepRow{
			Sequence: s.Sequence, Number: s.Number, Attempt: s.Attempt, Agent: s.Name, Code: s.Code, Status: s.Status, Error: s.Error,
			Took: float64(s.Micros) / 1000, Model: s.Model, Sandbox: s.Sandbox,
		}
		if u := s.Usage; u != nil {
			t.In, t.Out, t.Cost, t.Estimated = u.Input, u.Output, float64(u.CostMicros)/1e6, u.Estimated
		}
		var err error
		if t.Input, err = engine.AppendValue(nil, s.Input); err == nil {
			t.Output, err = engine.AppendValue(nil, s.Output)
		}
		if err != nil {
			return r, err
		}
		r.Steps = append(r.Steps, t)
	}
	for _, v := range values {
		data, err := engine.AppendValue(nil, v.from)
		if err != nil {
			return r, err
		}
		*v.to = data
	}
	return r, nil
}

// Millis returns a duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// StateMap returns a state as a map.
func StateMap(s engine.State) map[string]any {
	m := make(map[string]any, s.Len())
	for _, k := range s.Keys() {
		m[k], _ = s.Get(k)
	}
	return m
}
