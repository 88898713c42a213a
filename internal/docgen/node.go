package docgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
)

func nodePage(s *flow.TypeSpec) string {
	var b strings.Builder
	fmt.Fprintf(&b, notice, "the spec of the node type")
	fmt.Fprintf(&b, "# %s\n\n%s\n\n%s\n", s.Name, s.Summary, factList(s))
	if s.Doc != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(s.Doc))
	}
	b.WriteString("\n## Inputs\n\n" + portTable(withContext(s, s.Ports.In), s.Ports.AnyIn, "whatever is wired to the node"))
	b.WriteString("\n## Outputs\n\n" + portTable(withError(withContext(s, s.Ports.Out)), s.Ports.AnyOut, "what the settings name"))
	if s.PortsFor != nil {
		b.WriteString("\nThese are the ports under default settings; a node's own settings may give it others.\n")
	}
	if t := settingTable(s.Settings); t != "" {
		b.WriteString("\n## Settings\n\n" + t)
	}
	for i := range s.Examples {
		b.WriteString(example(&s.Examples[i]))
	}
	return b.String()
}

// factList returns one line on what the type is to the scheduler.
func factList(s *flow.TypeSpec) string {
	list := []string{"Category " + s.Category}
	if len(s.Aliases) > 0 {
		list = append(list, "also called `"+strings.Join(s.Aliases, "`, `")+"`")
	}
	switch {
	case s.ContextFor != nil:
		list = append(list, "writes or only reads its context, as its settings say")
	case s.Context == flow.ContextWrite:
		list = append(list, "writes its context")
	case s.Context == flow.ContextRead:
		list = append(list, "reads its context")
	}
	if s.NewContext {
		list = append(list, "makes a context")
	}
	if s.Composite {
		list = append(list, "has a body; not a transaction, its inner nodes are")
	}
	switch {
	case s.Pure:
		list = append(list, "pure: it may run before its start is durable, and `cache:` may stand on it")
	case s.InlineFor != nil:
		list = append(list, "under settings that make it pure it runs on the run's own goroutine and before its start is durable, and `cache:` may stand on it")
	case s.Replays && s.Inline:
		list = append(list, "may run before its start is durable, since it has no effect and is the same when it is run again")
	}
	if s.PureFor != nil && s.InlineFor == nil && !s.Pure {
		list = append(list, "`cache:` may stand on it under settings that make it pure")
	}
	if s.Inline && s.InlineFor == nil {
		list = append(list, "runs on the run's own goroutine")
	}
	return strings.Join(append(list, fmt.Sprintf("version %d", s.Version)), "; ") + "."
}

// withContext adds the port that every type has which uses a context.
func withContext(s *flow.TypeSpec, ports []flow.Port) []flow.Port {
	uses := s.Context != flow.ContextNone || s.ContextFor != nil || s.Composite
	named := func(p flow.Port) bool { return p.Name == "context" }
	if !uses || slices.ContainsFunc(ports, named) {
		return ports
	}
	return append(slices.Clone(ports), flow.Port{
		Name: "context", Type: flow.TypeContext,
		Description: "The context to use, or the one that was used.",
	})
}

// withError adds the port that every node has.
func withError(out []flow.Port) []flow.Port {
	return append(slices.Clone(out), flow.Port{
		Name: "error", Type: flow.TypeObject, Branch: true,
		Description: "Why the node failed: `code`, `message`, `node`, `attempt`. Wiring it handles the failure.",
	})
}

func portTable(ports []flow.Port, more bool, meaning string) string {
	if len(ports) == 0 && !more {
		return "None.\n"
	}
	var b strings.Builder
	b.WriteString("| port | type | | what |\n|---|---|---|---|\n")
	for i := range ports {
		p := &ports[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, p.Type, traits(p), cell(p.Description))
	}
	if more {
		fmt.Fprintf(&b, "| any other name | any | | %s |\n", meaning)
	}
	return b.String()
}

func traits(p *flow.Port) string {
	var list []string
	for _, t := range []struct {
		holds bool
		word  string
	}{
		{p.Required, "required"},
		{p.Lazy, "lazy"},
		{p.Many, "any number of edges"},
		{p.Exclusive, "several edges, one of them taken"},
		{p.Branch, "branch"},
	} {
		if t.holds {
			list = append(list, t.word)
		}
	}
	return strings.Join(list, ", ")
}

func settingTable(schema map[string]any) string {
	props, _ := schema["properties"].(map[string]any)
	if len(props) == 0 {
		return ""
	}
	required, _ := schema["required"].([]any)
	var b strings.Builder
	b.WriteString("| setting | type | | what |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(props)) {
		p, _ := props[name].(map[string]any)
		var notes []string
		if slices.Contains(required, any(name)) {
			notes = append(notes, "required")
		}
		if role, _ := p["x-weir"].(string); role != "" {
			notes = append(notes, roleOf(role))
		}
		description, _ := p["description"].(string)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, kindOf(p), strings.Join(notes, ", "), cell(description))
	}
	return b.String()
}

// roleOf says what a setting may hold besides literals.
func roleOf(role string) string {
	switch role {
	case "secret":
		return "template, may hold secrets"
	case "expression":
		return "CEL, bare"
	}
	return role
}

// kindOf returns what a setting takes, by its schema.
func kindOf(p map[string]any) string {
	if list, _ := p["enum"].([]any); len(list) > 0 {
		words := make([]string, len(list))
		for i, v := range list {
			words[i] = fmt.Sprintf("`%v`", v)
		}
		return strings.Join(words, ", ")
	}
	if list, _ := p["oneOf"].([]any); len(list) > 0 {
		words := make([]string, len(list))
		for i, v := range list {
			m, _ := v.(map[string]any)
			words[i] = kindOf(m)
		}
		return strings.Join(words, " or ")
	}
	kind := "any"
	if c, ok := p["const"]; ok {
		kind = fmt.Sprintf("`%v`", c)
	}
	switch t := p["type"].(type) {
	case string:
		kind = t
	case []any:
		words := make([]string, len(t))
		for i, v := range t {
			words[i] = fmt.Sprint(v)
		}
		kind = strings.Join(words, " or ")
	}
	if low, high := p["minimum"], p["maximum"]; low != nil && high != nil {
		kind += fmt.Sprintf(", %v to %v", low, high)
	} else if low != nil {
		kind += fmt.Sprintf(", from %v", low)
	}
	return kind
}

func example(e *flow.Example) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Example: %s\n\n```yaml\n%s\n```\n\n", e.Name, strings.Trim(e.Flow, "\n"))
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		fmt.Fprintf(&b, "and beside it, in `%s`,\n\n```yaml\n%s\n```\n\n", name, strings.Trim(e.Files[name], "\n"))
	}
	var given []string
	if len(e.Inputs) > 0 {
		given = append(given, "with the inputs "+formatValue(e.Inputs))
	}
	if len(e.Answers) > 0 {
		given = append(given, "with the answers "+formatValue(e.Answers))
	}
	if e.User != "" {
		given = append(given, "for the user "+e.User)
	}
	if len(e.Tools) > 0 {
		given = append(given, "with tools that return "+formatValue(e.Tools))
	}
	if len(e.Script) > 0 {
		given = append(given, "while the model says "+formatValue(e.Script))
	}
	line := strings.Join(append(given, exampleResult(e)), ", ")
	b.WriteString(strings.ToUpper(line[:1]) + line[1:] + ".\n")
	return b.String()
}

func exampleResult(e *flow.Example) string {
	if e.Error != "" {
		return "it fails with `" + e.Error + "`"
	}
	return "it ends with " + formatValue(e.Outputs)
}

// formatValue returns a value as code, in one line of JSON.
func formatValue(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return "`" + string(out) + "`"
}
