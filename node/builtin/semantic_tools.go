package builtin

import (
	"slices"
	"strings"
	"unicode"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// defaultOffered is the number of tools that semanticTools offers where its settings do not
// say, and maxOffered the largest that they may say.
const (
	defaultOffered = 5
	maxOffered     = 128
)

// semanticToolsNode chooses the tools whose descriptions fit a request.
type semanticToolsNode struct {
	Query   template   `json:"query"`
	Tools   toolChoice `json:"tools"`
	Limit   int        `json:"limit"`
	Always  []string   `json:"always"`
	NoMatch string     `json:"noMatch"`
}

func semanticToolsType() node.Type {
	return define[semanticToolsNode](&flow.TypeSpec{
		Name:     "semanticTools",
		Category: "model",
		Summary:  "Offers a model only the tools that fit a request.",
		Doc: `A model that is offered hundreds of tools chooses worse and pays for their descriptions. This node compares the request with
the name, description and parameters of each tool, and passes on the tools that fit best. Wire ` + "`tools`" + ` to the port
` + "`tools`" + ` of an ` + "`llmRequest`" + ` or ` + "`agent`" + `.

| input | what |
|---|---|
| ` + "`message`" + ` | the request, where ` + "`query`" + ` is not set: a text or a message |

| setting | what |
|---|---|
| ` + "`query`" + ` | the request, a template |
| ` + "`tools`" + ` | the tools to choose from: ` + "`auto`" + ` (default), every tool that this process offers, or a list of names |
| ` + "`limit`" + ` | the maximum number of tools (default 5, at most 128), those of ` + "`always`" + ` not counted |
| ` + "`always`" + ` | names of tools that are offered whatever the request says |
| ` + "`noMatch`" + ` | which tools are offered if none fits: ` + "`all`" + ` (default) or ` + "`none`" + `; those of ` + "`always`" + ` in both cases |

| output | what |
|---|---|
| ` + "`tools`" + ` | the choice |
| ` + "`toolNames`" + ` | the names, best first |
| ` + "`scores`" + ` | a list of ` + "`{name, score}`" + `: the tools that have a term of the request, best first, also those over the limit |

**How tools are compared.** By terms, ranked with BM25, as the [memory](../memory.md) ranks its items: words without case and diacritics, and
pairs of letters in scripts without spaces. Names are split at capital letters and underscores. The first 32 terms of the request
count. No model and no embedding is used: a request in another language than the descriptions fits no tool. What was offered is
in the outputs of the node, and so in the journal: a run that is continued or forked has the same choice.`,
		Ports: flow.Ports{
			In: []flow.Port{{Name: "message", Type: flow.TypeMessage, Description: "The request."}},
			Out: []flow.Port{
				{Name: "tools", Type: flow.TypeTools, Description: "The choice, for llmRequest and agent."},
				{Name: "toolNames", Type: flow.TypeList, Description: "The names of the tools, best first."},
				{Name: "scores", Type: flow.TypeList, Description: "The tools that have a term of the request."},
			},
			AnyIn: true,
		},
		Settings: objectSchema(map[string]any{
			"query":  templateSchema("string", "The request. Default: the port message."),
			"tools":  toolChoiceSchema("The tools to choose from: auto, or names. Default: auto."),
			"limit":  map[string]any{"type": "integer", "minimum": 1, "maximum": maxOffered, "description": "The maximum number of tools. Default: 5."},
			"always": map[string]any{"type": "array", "uniqueItems": true, "items": map[string]any{"type": "string", "minLength": 1}, "description": "Tools that are always offered."},

			"noMatch": choiceSchema("Which tools are offered if none fits.", "all", "none"),
		}),
		Inline: true,
		Examples: []flow.Example{{
			Name: "the tool for a request",
			Flow: `
weir: 1
name: pick
nodes:
  pick: {type: semanticTools, with: {query: "What do you remember about me?", tools: [memoryRead, memoryForget, memoryWrite], limit: 1, noMatch: none}}
outputs: {names: "{{ pick.toolNames }}"}
`,
			User:    "ada",
			Outputs: map[string]any{"names": []any{"memoryWrite"}},
		}, {
			Name: "a tool that is not there",
			Flow: `
weir: 1
name: pick-missing
nodes:
  pick: {type: semanticTools, with: {query: weather, tools: [no_such_tool]}}
outputs: {names: "{{ pick.toolNames }}"}
`,
			Error: CodeToolUnknown,
		}},
	})
}

func (n *semanticToolsNode) setDefaults() {
	if n.Tools.names == nil {
		n.Tools.auto = true
	}
	if n.Limit == 0 {
		n.Limit = defaultOffered
	}
	n.NoMatch = firstText(n.NoMatch, "all")
}

// Run ranks the tools and outputs the choice.
func (n *semanticToolsNode) Run(ctx *node.Ctx) error {
	query, err := n.Query.text(ctx, "query")
	if err != nil {
		return err
	}
	if !n.Query.isSet() {
		query = ctx.Text("message")
	}
	if strings.TrimSpace(query) == "" {
		return withHint(permanentError(CodeInput, "there is no request to compare the tools with"), "set query, or wire the port message")
	}
	candidates, err := n.Tools.tools(ctx.Tools())
	if err != nil {
		return err
	}
	if _, err := toolsNamed(ctx.Tools(), n.Always); err != nil {
		return err
	}
	ranked := rankTools(query, candidates)
	names := slices.Clone(n.Always)
	scores := make([]any, len(ranked))
	for i, r := range ranked {
		scores[i] = map[string]any{"name": r.name, "score": r.score}
		if i < n.Limit {
			names = append(names, r.name)
		}
	}
	if len(ranked) == 0 && n.NoMatch == "all" {
		for _, t := range candidates {
			names = append(names, t.DisplayName())
		}
	}
	list := []any{}
	for _, name := range names {
		if !slices.Contains(list, any(name)) {
			list = append(list, name)
		}
	}
	ctx.Output("tools", list)
	ctx.Output("toolNames", list)
	ctx.Output("scores", scores)
	ctx.Meta("offered", int64(len(list)))
	ctx.Meta("of", int64(len(candidates)))
	return nil
}

// rankedTool is a tool that has a term of a request.
type rankedTool struct {
	name  string
	score float64
}

// rankTools returns the tools that have a term of the query, best first, among equal ones in
// alphabetical order.
func rankTools(query string, tools []*tool.Tool) []rankedTool {
	terms := memory.SearchTerms(query)
	stats := memory.Stats{Items: len(tools), With: make([]int, len(terms))}
	list := make([]memory.Candidate, len(tools))
	for i, t := range tools {
		words := memory.Terms(toolText(t))
		list[i] = memory.Candidate{Terms: words, Seq: int64(-i)}
		stats.Words += len(words)
		for k := range terms {
			if terms[k].MatchesAny(words) {
				stats.With[k]++
			}
		}
	}
	memory.Rank(terms, stats, list)
	var out []rankedTool
	for i := range list {
		if s := list[i].Score(); s > 0 {
			out = append(out, rankedTool{tools[-list[i].Seq].DisplayName(), s})
		}
	}
	return out
}

// toolText returns what a request is compared with: the names and descriptions of a tool and of
// its parameters.
func toolText(t *tool.Tool) string {
	var b strings.Builder
	b.WriteString(splitName(t.Name) + " " + splitName(t.Alias) + "\n" + t.Description)
	properties, _ := t.Parameters["properties"].(map[string]any)
	for name, p := range properties { // order: terms are counted
		o, _ := p.(map[string]any)
		about, _ := o["description"].(string)
		b.WriteString("\n" + splitName(name) + " " + about)
	}
	return b.String()
}

// splitName separates the words of a name in camel case or with underscores.
func splitName(name string) string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		switch {
		case r == '_' || r == '-' || r == ':' || r == '/':
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(before):
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}
