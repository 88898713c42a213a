package session

import (
	"encoding/json"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// RoundSettings change the model settings of the main context for one round. Settings of
// nodes still replace them. The zero value changes nothing.
type RoundSettings struct {
	// System adds to the system instructions of the flow.
	System string `json:"system,omitempty"`
	// Temperature, MaxOutput (tokens) and Reasoning replace those of the flow.
	Temperature *float64 `json:"temperature,omitempty"`
	MaxOutput   int      `json:"max_output,omitempty"`
	Reasoning   string   `json:"reasoning,omitempty"`
	// ClientTools are offered to the models of the main context. A call pauses the round until Session.Answer gives its output.
	ClientTools *convo.ClientTools `json:"client_tools,omitempty"`
	// Demands are what the answer must be; nil leaves that to the flow. A node that does not comply fails with
	// model_answer_invalid.
	Demands *convo.AnswerDemands `json:"demands,omitempty"`
}

// encode returns the settings as the queue keeps them, nil for none.
func (s RoundSettings) encode() engine.Value {
	if s == (RoundSettings{}) {
		return nil
	}
	return plainValue(s)
}

// plainValue returns a value of strings, numbers and lists as the engine has values. Such a
// value can always be encoded.
func plainValue(v any) engine.Value {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	out, err := engine.ParseValue(b)
	if err != nil {
		return nil
	}
	return out
}

// readPlain reads what plainValue made.
func readPlain[T any](v engine.Value) (out T) {
	if v == nil {
		return out
	}
	if b, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(b, &out) // plainValue made it of such a value
	}
	return out
}

func decodeRoundSettings(v engine.Value) RoundSettings { return readPlain[RoundSettings](v) }

// apply changes the settings of a flow.
func (s RoundSettings) apply(to *convo.Settings) {
	if s.System != "" && to.System != "" {
		to.System += "\n\n"
	}
	to.System += s.System
	if s.Temperature != nil {
		to.Temperature = s.Temperature
	}
	if s.MaxOutput > 0 {
		to.MaxOutput = s.MaxOutput
	}
	if s.Reasoning != "" {
		to.Reasoning = s.Reasoning
	}
	if s.ClientTools != nil {
		to.ClientTools = s.ClientTools
	}
	if s.Demands != nil {
		to.Demands = s.Demands
	}
}
