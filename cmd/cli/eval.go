package cli

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow/expr"
)

func (p *cli) evalCommand() *cobra.Command {
	var data string
	var asJSON, list bool
	c := &cobra.Command{
		Use:   "eval EXPR",
		Short: "Evaluate an expression, or list the functions of the language",
		Long: `Evaluate an expression of the language of flow files, or a template with {{ }}. The members
of the object in --data are the names that it can read; ` + "`now`" + ` is the current time.

A text is printed as it is, other values as JSON; --json prints all values as JSON in one
line. --functions lists the functions.`,
		Example: `  weir eval '[1, 2, 3].sum()'
  weir eval 'state.items.map(x, x.price).max()' --data data.json
  echo '{"name": "Ada"}' | weir eval 'Hello {{ name }}' --data -
  weir eval --functions`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case list && len(args) > 0:
				return usagef("--functions takes no expression")
			case !list && len(args) != 1:
				return usagef("expected one expression; put it in quotes: weir eval '1 + 1'")
			}
			return nil
		},
		ValidArgsFunction: completeFunctions,
		RunE: func(_ *cobra.Command, args []string) error {
			if list {
				p.printFunctions(asJSON)
				return nil
			}
			names, err := p.evalData(data)
			if err != nil {
				return err
			}
			return p.evaluate(args[0], names, asJSON)
		},
	}
	c.Flags().StringVar(&data, "data", "", "read the names from the JSON or YAML object in `FILE`; - is stdin")
	c.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	c.Flags().BoolVar(&list, "functions", false, "list the functions, with an example of each")
	return c
}

// evalData reads the names that an expression can read.
func (p *cli) evalData(file string) (expr.Map, error) {
	names := expr.Map{"now": time.Now(), expr.UUIDSeed: rand.Text()}
	if file == "" {
		return names, nil
	}
	text, err := p.readFile(file)
	if err != nil {
		return nil, usagef("--data: %w", err)
	}
	given, err := objectFrom([]byte(text), "names")
	if err != nil {
		return nil, usagef("--data %s: %w", file, err)
	}
	for name, v := range given {
		if names[name], err = engine.Normalize(v); err != nil {
			return nil, usagef("--data %s: %s: %w", file, name, err)
		}
	}
	return names, nil
}

// evaluate prints the value of an expression or template.
func (p *cli) evaluate(src string, names expr.Map, asJSON bool) error {
	t := src
	if !strings.Contains(src, "{{") {
		t = "{{" + src + "}}"
	}
	shift := len(t) - len(src) // both braces
	tpl, err := expr.ParseTemplate(t)
	if err == nil && tpl.Program() == nil && shift > 0 { // the expression has its own "}}"
		err = &expr.SyntaxError{Offset: strings.Index(src, "}}") + shift/2, Message: `unexpected "}}"`}
	}
	if err != nil {
		return p.evalProblem(src, err, shift/2, names)
	}
	v, err := tpl.Eval(names)
	if err == nil {
		v, err = engine.Normalize(v)
	}
	if err != nil {
		return p.evalProblem(src, err, shift/2, names)
	}
	switch s, text := v.(string); {
	case asJSON:
		writeJSON(p.out, v)
	case text:
		fmt.Fprintln(p.out, s)
	default:
		p.printResult(v)
	}
	return nil
}

// evalProblem returns an error with the line of the expression and a mark below its place.
func (p *cli) evalProblem(src string, err error, shift int, names expr.Map) error {
	if e, ok := errors.AsType[*expr.SyntaxError](err); ok {
		return usagef("%s%s", e.Message, p.placeIn(src, e.Offset-shift))
	}
	e, ok := errors.AsType[*expr.EvalError](err)
	if !ok {
		return err
	}
	msg := e.Message
	if e.Missing != nil && len(e.Missing.Path) == 0 {
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(n string) bool { return n == expr.UUIDSeed })
		msg += didYouMean(e.Missing.Root, known)
		if len(known) == 1 {
			msg += "; --data FILE gives names"
		} else {
			msg += "; there are " + strings.Join(known, ", ")
		}
	}
	return fmt.Errorf("%s%s", msg, p.placeIn(src, e.Offset-shift))
}

// placeIn shows the line with a position and a mark below it.
func (p *cli) placeIn(src string, offset int) string {
	offset = min(max(offset, 0), len(src))
	start := strings.LastIndexByte(src[:offset], '\n') + 1
	line, _, _ := strings.Cut(src[start:], "\n")
	mark := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, src[start:offset])
	return "\n  " + line + "\n  " + mark + p.style().bad.Render("^")
}

// printResult prints a value as JSON over several lines, in colour on a terminal.
func (p *cli) printResult(v any) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		fmt.Fprintln(p.out, v)
		return
	}
	st := p.styleFor(p.out)
	for line := range strings.Lines(b.String()) {
		bare := strings.TrimLeft(line, " ")
		fmt.Fprint(p.out, line[:len(line)-len(bare)])
		value := strings.TrimRight(bare, "\n")
		if name, rest, ok := memberOf(value); ok {
			fmt.Fprint(p.out, st.bold.Render(name)+": ")
			value = rest
		}
		end := ""
		if cut, comma := strings.CutSuffix(value, ","); comma {
			value, end = cut, ","
		}
		switch {
		case strings.HasPrefix(value, `"`):
			value = st.good.Render(value)
		case value != "" && !strings.ContainsAny(value[:1], "{}[]"):
			value = st.busy.Render(value)
		}
		fmt.Fprintln(p.out, value+end)
	}
}

// memberOf splits a line of JSON into the quoted name of a member and the rest.
func memberOf(line string) (name, rest string, ok bool) {
	if !strings.HasPrefix(line, `"`) {
		return "", "", false
	}
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			rest, ok = strings.CutPrefix(line[i+1:], ": ")
			return line[:i+1], rest, ok
		}
	}
	return "", "", false
}

// listedFunction is a function as --functions --json prints it.
type listedFunction struct {
	Name     string          `json:"name"`
	Usage    string          `json:"usage"`
	Group    string          `json:"group"`
	Summary  string          `json:"summary"`
	Examples []listedExample `json:"examples"`
}

type listedExample struct {
	Expr   string          `json:"expr"`
	Result json.RawMessage `json:"result"`
}

// printFunctions lists the functions of the language.
func (p *cli) printFunctions(asJSON bool) {
	if asJSON {
		var list []listedFunction
		for _, f := range expr.Functions() {
			l := listedFunction{Name: f.Name, Usage: f.Usage, Group: f.Group, Summary: f.Summary}
			for _, e := range f.Examples {
				l.Examples = append(l.Examples, listedExample{e.Expr, json.RawMessage(e.Result)})
			}
			list = append(list, l)
		}
		writeJSON(p.out, list)
		return
	}
	st := p.styleFor(p.out)
	for i, group := range expr.Groups() {
		if i > 0 {
			fmt.Fprintln(p.out)
		}
		fmt.Fprintln(p.out, st.bold.Render(group))
		for _, f := range expr.Functions() {
			if f.Group != group {
				continue
			}
			fmt.Fprintf(p.out, "  %s\n      %s\n", st.busy.Render(f.Usage), f.Summary)
			for _, e := range f.Examples {
				fmt.Fprintf(p.out, "      %s\n", st.dim.Render(e.Expr+"  ->  "+e.Result))
			}
		}
	}
}

// completeFunctions offers the functions that continue the last word of an expression.
func completeFunctions(_ *cobra.Command, args []string, typed string) (completions, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	word := typed[strings.LastIndexFunc(typed, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})+1:]
	before := strings.TrimSuffix(typed, word)
	if namespace := strings.TrimRight(before, "."); namespace != before {
		if dot := namespace[strings.LastIndexAny(namespace, " (,[{+-*/!?:&|<>=")+1:]; isNamespace(dot) {
			before, word = strings.TrimSuffix(namespace, dot), dot+"."+word
		}
	}
	var out completions
	for _, f := range expr.Functions() {
		if strings.HasPrefix(f.Name, word) {
			out = append(out, cobra.CompletionWithDesc(before+f.Name+"(", f.Usage))
		}
	}
	return out, noFiles | cobra.ShellCompDirectiveNoSpace
}

// isNamespace reports whether functions have the name and a point before theirs.
func isNamespace(name string) bool {
	return slices.ContainsFunc(expr.Functions(), func(f expr.Function) bool { return strings.HasPrefix(f.Name, name+".") })
}
