package llm

import (
	"cmp"
	"fmt"
	"mime"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// Abilities are what a model takes in a request. A field that is nil is unknown, and is never
// refused.
type Abilities struct {
	// Tools: the model calls tools. Schema: its answers can be restricted to a JSON Schema.
	Tools  *bool `json:"tools,omitempty"`
	Schema *bool `json:"schema,omitempty"`
	// Images and PDF: messages may contain them.
	Images *bool `json:"images,omitempty"`
	PDF    *bool `json:"pdf,omitempty"`
	// Temperature: the model takes a temperature other than 1. TemperatureWithReasoning: also
	// while it reasons.
	Temperature              *bool `json:"temperature,omitempty"`
	TemperatureWithReasoning *bool `json:"temperatureWithReasoning,omitempty"`
	// Reasoning: the model takes a setting of its reasoning. ThinkingBudget: it takes a number of tokens to think with.
	Reasoning      *bool `json:"reasoning,omitempty"`
	ThinkingBudget *bool `json:"thinkingBudget,omitempty"`
}

// override returns a with the abilities that o knows.
func (a *Abilities) override(o *Abilities) *Abilities {
	if a == nil || o == nil {
		return cmp.Or(o, a)
	}
	return &Abilities{
		Tools:                    cmp.Or(o.Tools, a.Tools),
		Schema:                   cmp.Or(o.Schema, a.Schema),
		Images:                   cmp.Or(o.Images, a.Images),
		PDF:                      cmp.Or(o.PDF, a.PDF),
		Temperature:              cmp.Or(o.Temperature, a.Temperature),
		TemperatureWithReasoning: cmp.Or(o.TemperatureWithReasoning, a.TemperatureWithReasoning),
		Reasoning:                cmp.Or(o.Reasoning, a.Reasoning),
		ThinkingBudget:           cmp.Or(o.ThinkingBudget, a.ThinkingBudget),
	}
}

// Demands are what a request needs from a model.
type Demands struct {
	Tools, Schema, Images, PDF bool
	// Temperature is nil if the request sets none.
	Temperature *float64
	// Reasoning is a word of the provider or a number of tokens; "" and "none" need nothing.
	Reasoning string
	// MaxOutput is in tokens; 0 means that the request sets no limit.
	MaxOutput int
}

// Refusal says why a model cannot take a request.
type Refusal struct {
	// Demand is the name of the ability that the model lacks, as in the configuration, or
	// "maxOutput".
	Demand string
	// Message completes "MODEL ...".
	Message string
}

// Refusals returns the demands that the model is known not to meet, nil if there are none.
func (m Model) Refusals(d Demands) []Refusal {
	takes := cmp.Or(m.Takes, &Abilities{})
	lacks := func(known *bool) bool { return known != nil && !*known }
	tokens, errNumber := strconv.Atoi(d.Reasoning)
	reasons := d.Reasoning != "" && d.Reasoning != "none" && (errNumber != nil || tokens != 0)
	varied := d.Temperature != nil && *d.Temperature != 1
	var out []Refusal
	for _, r := range []struct {
		demanded bool
		known    *bool
		name     string
		message  string
	}{
		{d.Tools, takes.Tools, "tools", "cannot call tools"},
		{d.Schema, takes.Schema, "schema", "cannot answer by a JSON Schema"},
		{d.Images, takes.Images, "images", "does not take images"},
		{d.PDF, takes.PDF, "pdf", "does not take PDF files"},
		{varied, takes.Temperature, "temperature", "takes no temperature other than 1"},
		{varied && reasons && !lacks(takes.Temperature), takes.TemperatureWithReasoning, "temperatureWithReasoning", "takes no temperature other than 1 while it reasons"},
		{reasons, takes.Reasoning, "reasoning", "takes no reasoning setting"},
		{reasons && errNumber == nil && !lacks(takes.Reasoning), takes.ThinkingBudget, "thinkingBudget", "takes no number of tokens to think with (thinkingBudget): use reasoning"},
	} {
		if r.demanded && lacks(r.known) {
			out = append(out, Refusal{r.name, r.message})
		}
	}
	if m.MaxOutput > 0 && d.MaxOutput > m.MaxOutput {
		out = append(out, Refusal{"maxOutput", fmt.Sprintf("answers with at most %d tokens, and maxOutput is %d", m.MaxOutput, d.MaxOutput)})
	}
	return out
}

// RefusalMessage says what a model does not take.
func RefusalMessage(model string, refusals []Refusal) string {
	reasons := make([]string, len(refusals))
	for i, r := range refusals {
		reasons[i] = r.Message
	}
	return fmt.Sprintf("the model %s %s", model, strings.Join(reasons, ", and "))
}

// demandsOf returns what a request needs.
func demandsOf(req *Request) Demands {
	d := Demands{
		Tools: len(req.Tools) > 0, Schema: req.Schema != nil, Temperature: req.Temperature,
		Reasoning: req.Reasoning, MaxOutput: req.MaxOutput,
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			d.Images = d.Images || p.Kind == "image"
			d.PDF = d.PDF || isPDF(p)
		}
	}
	return d
}

func isPDF(p convo.Part) bool {
	if p.Kind == "image" {
		return false
	}
	if kind, _, err := mime.ParseMediaType(p.MIME); err == nil {
		return kind == "application/pdf"
	}
	return strings.HasSuffix(strings.ToLower(cmp.Or(p.Name, p.URL)), ".pdf")
}

// checkDemands refuses a request that the model is known not to take. It is called within the
// effect of the call, so that an answer in the journal holds whatever the table says. A
// recording answers any request.
func (t *turn) checkDemands(req *Request) error {
	if t.service.replay != nil {
		return nil
	}
	refusals := t.window.model.Refusals(t.demands)
	if refusals == nil {
		return nil
	}
	return &Error{Code: engine.CodeModelUnsupported, Message: RefusalMessage(req.Provider+"/"+req.Model, refusals)}
}
