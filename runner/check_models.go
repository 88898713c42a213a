package runner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
)

// CheckModels compares the nodes of a flow, and of the flows that it uses, with what the
// models that they name take. model, if not "", replaces the flow's model, as in SettingsFor.
// Models and tools that come by a value, and files in messages, are checked before each call.
// The error is a *flow.Invalid with all problems.
func CheckModels(f *flow.Flow, types flow.Catalogue, models *llm.Catalogue, model string) error {
	var problems []flow.Problem
	for _, used := range f.Dependencies() {
		settings := SettingsOf(used)
		if used == f {
			settings = SettingsFor(f, model)
		}
		c := modelCheck{types: types, models: models, around: settings, said: make(map[string]bool)}
		c.graph(&used.Graph)
		problems = append(problems, c.problems...)
	}
	if problems == nil {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b flow.Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return &flow.Invalid{Problems: problems}
}

// modelCheck compares the nodes of one flow with what models take.
type modelCheck struct {
	types    flow.Catalogue
	models   *llm.Catalogue
	around   convo.Settings // of the flow's context
	problems []flow.Problem
	said     map[string]bool // messages, so that a setting of the context is reported once
}

// modelSettings are the settings that all nodes which ask models share.
type modelSettings struct {
	Provider       string
	Model          string
	Models         modelList
	Temperature    *float64
	MaxOutput      int
	Reasoning      string
	ThinkingBudget int
	Schema         map[string]any
}

// modelList reads a setting that lists models. Types that write code have an object there, with
// a model for each of their agents, and ask these beside the model of the node.
type modelList struct{ fallback, agents []string }

// UnmarshalJSON reads either form.
func (l *modelList) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &l.fallback) == nil {
		return nil
	}
	var byAgent map[string]string
	if err := json.Unmarshal(b, &byAgent); err != nil {
		return err
	}
	l.agents = slices.Sorted(maps.Values(byAgent))
	return nil
}

func (c *modelCheck) graph(g *flow.Graph) {
	names := make(map[string]bool) // of nodes that name tools
	for _, t := range NamedTools(g) {
		names[t.Node.ID] = true
	}
	for _, n := range g.Nodes {
		spec := c.types.Lookup(n.Type)
		if spec != nil && (spec.NewContext || spec.AsksModels != nil && spec.AsksModels(n.With)) {
			c.node(g, n, spec, names)
		}
		if n.Body != nil {
			c.graph(n.Body)
		}
	}
}

// node compares one node that asks models, or makes a context for them.
func (c *modelCheck) node(g *flow.Graph, n *flow.Node, spec *flow.TypeSpec, namesTools map[string]bool) {
	var own modelSettings
	if b, err := json.Marshal(n.With); err != nil || json.Unmarshal(b, &own) != nil {
		return // a Go type whose settings of these names mean something else
	}
	around := c.around
	d := llm.Demands{Schema: own.Schema != nil || spec.AnswersBySchema != nil && spec.AnswersBySchema(n.With), Tools: namesTools[n.ID]}
	for _, e := range g.Edges {
		if e.To != n.ID {
			continue
		}
		switch e.ToPort {
		case "context":
			around = convo.Settings{} // known only in the run
		case "tools":
			d.Tools = d.Tools || namesTools[e.From]
		}
	}
	fromContext := own.Temperature == nil && own.MaxOutput == 0 && own.Reasoning == "" && own.ThinkingBudget == 0
	d.Temperature, d.MaxOutput = cmp.Or(own.Temperature, around.Temperature), cmp.Or(own.MaxOutput, around.MaxOutput)
	d.Reasoning = cmp.Or(own.Reasoning, around.Reasoning)
	if own.ThinkingBudget > 0 {
		d.Reasoning = fmt.Sprint(own.ThinkingBudget)
	}
	for _, name := range append(own.modelNames(around), own.Models.agents...) {
		provider, model := llm.SplitModel(name)
		m, _ := c.models.Find(provider, model)
		for _, r := range m.Refusals(d) {
			c.report(n, name, r, fromContext)
		}
	}
}

// modelNames returns the models that a node asks, as provider/model; nil if they are not known.
func (s *modelSettings) modelNames(around convo.Settings) []string {
	switch {
	case len(s.Models.fallback) > 0:
		return s.Models.fallback
	case s.Model != "":
		return qualified(cmp.Or(s.Provider, around.Provider), s.Provider != "", s.Model)
	case s.Provider != "":
		return qualified(s.Provider, true, around.Model)
	}
	names := qualified(around.Provider, true, around.Model)
	if around.Fallback != nil {
		names = append(names, around.Fallback.Models...)
	}
	return names
}

// qualified returns the name of a model with its provider, which the model may name itself
// unless the provider is given beside it.
func qualified(provider string, given bool, model string) []string {
	switch {
	case model == "":
		return nil
	case given && provider != "":
		return []string{provider + "/" + strings.TrimPrefix(model, provider+"/")}
	case strings.Contains(model, "/"):
		return []string{model}
	case provider == "":
		return nil
	}
	return []string{provider + "/" + model}
}

func (c *modelCheck) report(n *flow.Node, model string, r llm.Refusal, fromContext bool) {
	who := "node " + n.ID
	if fromContext && !slices.Contains([]string{"tools", "schema"}, r.Demand) {
		who = "the settings of the context"
	}
	message := who + ": " + llm.RefusalMessage(model, []llm.Refusal{r})
	if c.said[message] {
		return
	}
	c.said[message] = true
	c.problems = append(c.problems, flow.Problem{
		Pos: n.PlaceOf(r.Demand), Code: engine.CodeModelUnsupported, Message: message,
		Hint: hintOf(r),
	})
}

func hintOf(r llm.Refusal) string {
	key := "takes." + r.Demand
	if r.Demand == "maxOutput" {
		key = r.Demand
	}
	return "use another model, or remove the setting; if this is wrong, set " + key + " of the model in the configuration"
}
