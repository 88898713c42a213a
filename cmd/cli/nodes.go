package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow"
)

func (p *cli) nodesCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "nodes [TYPE]",
		Short: "List the node types, or describe one",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("did not expect %q; describe one type at a time", args[1])
			}
			return nil
		},
		ValidArgsFunction: p.completeTypes,
		RunE: func(_ *cobra.Command, args []string) error {
			cat, err := app.Catalogue()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				s := cat.Lookup(args[0])
				if s == nil {
					return usagef("there is no node type %q%s; `weir nodes` lists them", args[0], didYouMean(args[0], names(cat.Specs())))
				}
				p.printType(s, asJSON)
				return nil
			}
			p.printTypes(cat.Specs(), asJSON)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// nodeType is a node type as --json prints it.
type nodeType struct {
	Name     string         `json:"name"`
	Aliases  []string       `json:"aliases"`
	Version  int            `json:"version"`
	Category string         `json:"category"`
	Summary  string         `json:"summary"`
	Doc      string         `json:"doc,omitempty"`
	In       []port         `json:"in"`
	Out      []port         `json:"out"`
	Settings map[string]any `json:"settings,omitempty"`
}

type port struct {
	Name        string        `json:"name"`
	Type        flow.PortType `json:"type"`
	Required    bool          `json:"required"`
	Description string        `json:"description"`
}

func nodeTypeOf(s *flow.TypeSpec) nodeType {
	return nodeType{
		Name: s.Name, Aliases: append([]string{}, s.Aliases...), Version: s.Version, Category: s.Category,
		Summary: s.Summary, Doc: s.Doc, In: portsOf(s.Ports.In), Out: portsOf(s.Ports.Out), Settings: s.Settings,
	}
}

func portsOf(ports []flow.Port) []port {
	out := make([]port, 0, len(ports))
	for _, x := range ports {
		out = append(out, port{x.Name, x.Type, x.Required, x.Description})
	}
	return out
}

func names(specs []*flow.TypeSpec) []string {
	var out []string
	for _, s := range specs {
		out = append(append(out, s.Name), s.Aliases...)
	}
	return out
}

func (p *cli) printTypes(specs []*flow.TypeSpec, asJSON bool) {
	if asJSON {
		list := make([]nodeType, 0, len(specs))
		for _, s := range specs {
			list = append(list, nodeTypeOf(s))
		}
		writeJSON(p.out, list)
		return
	}
	groups := make(map[string][]*flow.TypeSpec)
	for _, s := range specs {
		groups[s.Category] = append(groups[s.Category], s)
	}
	st := p.styleFor(p.out)
	t := p.table("")
	for _, category := range slices.Sorted(maps.Keys(groups)) {
		t.row(st.bold.Render(category))
		for _, s := range groups[category] {
			name := s.Name
			if len(s.Aliases) > 0 {
				name += " (" + strings.Join(s.Aliases, ", ") + ")"
			}
			t.row("  "+name, s.Summary)
		}
	}
	t.print()
}

func (p *cli) printType(s *flow.TypeSpec, asJSON bool) {
	if asJSON {
		writeJSON(p.out, nodeTypeOf(s))
		return
	}
	st := p.styleFor(p.out)
	fmt.Fprintf(p.out, "%s  %s\n%s\n", st.bold.Render(s.Name), st.dim.Render(s.Category), s.Summary)
	if len(s.Aliases) > 0 {
		fmt.Fprintf(p.out, "Also called %s.\n", strings.Join(s.Aliases, ", "))
	}
	p.printPorts("Inputs", s.Ports.In, s.Ports.AnyIn)
	p.printPorts("Outputs", s.Ports.Out, s.Ports.AnyOut)
	p.printSettings(s)
	if s.Doc != "" {
		fmt.Fprintf(p.out, "\n%s\n", s.Doc)
	}
	for _, e := range s.Examples {
		fmt.Fprintf(p.out, "\n%s\n%s\n", st.bold.Render("Example: "+e.Name), indent(strings.Trim(e.Flow, "\n"), "  "))
		for _, name := range slices.Sorted(maps.Keys(e.Files)) {
			fmt.Fprintf(p.out, "\n%s\n%s\n", name+":", indent(strings.Trim(e.Files[name], "\n"), "  "))
		}
	}
}

func (p *cli) printPorts(title string, ports []flow.Port, more bool) {
	fmt.Fprintf(p.out, "\n%s\n", p.styleFor(p.out).bold.Render(title))
	t := p.table("")
	for _, x := range ports {
		kind := string(x.Type)
		if x.Required {
			kind += ", required"
		}
		if x.Lazy {
			kind += ", lazy"
		}
		if x.Many {
			kind += ", any number"
		}
		t.row("  "+x.Name, kind, x.Description)
	}
	if more {
		t.row("  any name", "any")
	}
	if t.empty() {
		t.row("  none")
	}
	t.print()
}

func (p *cli) printSettings(s *flow.TypeSpec) {
	props, _ := s.Settings["properties"].(map[string]any)
	if len(props) == 0 {
		return
	}
	required, _ := s.Settings["required"].([]any)
	fmt.Fprintf(p.out, "\n%s\n", p.styleFor(p.out).bold.Render("Settings"))
	t := p.table("")
	for _, name := range slices.Sorted(maps.Keys(props)) {
		setting, _ := props[name].(map[string]any)
		kind, _ := setting["type"].(string)
		if slices.Contains(required, any(name)) {
			kind = strings.TrimPrefix(kind+", required", ", ")
		}
		description, _ := setting["description"].(string)
		t.row("  "+name, kind, description)
	}
	t.print()
}
