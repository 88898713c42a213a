package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
)

// showNode shows one node in full.
func (p *cli) showNode(ctx context.Context, a *application, v *runner.RunView, o *showOptions) error {
	c := history.NewTimeline(v)
	n := c.Nodes[o.node]
	if n == nil {
		return noNode(v, o.node, c)
	}
	inputs, err := history.NodeInputs(ctx, a, v.Run.ID, n)
	if err != nil {
		return err
	}
	said, err := app.AddedMessages(n.Contexts)
	if err != nil {
		return err
	}
	if o.json {
		writeJSON(p.out, app.NodeDetailsOf(n, inputs, said))
		return nil
	}
	row, err := a.Store.Run(ctx, v.Run.ID)
	if err != nil {
		return err
	}
	p.printNode(n, inputs, said, o.at == 0 && app.IsInterrupted(&row))
	return nil
}

func noNode(v *runner.RunView, path string, c *history.Timeline) error {
	return usagef("run %s has no node %q%s; `%s` lists them", v.Run.ID, path, didYouMean(path, c.Order), engine.CommandLine("show", v.Run.ID))
}

// printNode is a node in full, for people; stopped says that no process executes its run.
func (p *cli) printNode(n *history.NodeRecord, inputs runner.NodeInputs, said []app.ContextMessage, stopped bool) {
	st := p.styleFor(p.out)
	fmt.Fprintf(p.out, "%s  %s  %s\n", st.bold.Render(n.Path), n.Type, p.statusOr(n.Status, stopped && n.Status == engine.Running))
	if n.Started > 0 {
		fmt.Fprintln(p.out, st.dim.Render(fmt.Sprintf("started %s, %s, %s",
			time.UnixMilli(n.Started).Format("2006-01-02 15:04:05.000"), count(n.Attempts, "attempt"), micros(n.Duration()))))
	}
	if n.Cached {
		fmt.Fprintln(p.out, "the result was kept by an earlier run; the node did not work (cached)")
	}
	if n.Error != nil {
		p.printf("%s", st.bad.Render(app.Printable(n.Error.Error())))
		if n.Error.Hint != "" {
			p.printf("hint: %s", app.Printable(n.Error.Hint))
		}
	}
	p.printValues("Inputs", inputs.Values)
	p.printValues("Inputs that were computed, evaluated again from the record", inputs.Computed)
	p.printValues("Inputs as written", withoutNames(inputs.Templates, inputs.Computed))
	for _, w := range n.Waits {
		p.section("Waited for")
		fmt.Fprintln(p.out, "  "+app.Printable(describe(w.Interrupt)))
		if w.Answered {
			fmt.Fprintf(p.out, "  answered by %s: %s\n", w.By, app.Printable(plain(w.Answer)))
		}
	}
	for _, e := range n.Effects {
		p.printEffect(e)
	}
	for _, text := range n.Partial {
		p.section("Partial answer, which was cut off")
		fmt.Fprintln(p.out, p.wrap(app.Printable(text), "  "))
	}
	if len(said) > 0 {
		p.section("Messages")
		for _, m := range said {
			p.printMessage(m)
		}
	}
	p.printValues("Outputs", n.Outputs)
	p.printValues("Metadata", n.Metadata)
	if len(n.State) > 0 {
		p.section("State")
		for _, s := range n.State {
			if s.Delete {
				fmt.Fprintf(p.out, "  %s deleted\n", s.Key)
				continue
			}
			p.printValue(s.Key, s.Value)
		}
	}
}

func (p *cli) section(title string) {
	fmt.Fprintf(p.out, "\n%s\n", p.styleFor(p.out).bold.Render(title))
}

func (p *cli) printValues(title string, vs engine.Values) {
	if len(vs) == 0 {
		return
	}
	p.section(title)
	for _, v := range vs {
		p.printValue(v.Name, v.Value)
	}
}

func (p *cli) printValue(name string, v engine.Value) {
	text := app.Printable(plain(v))
	if strings.Contains(text, "\n") {
		fmt.Fprintf(p.out, "  %s:\n%s\n", name, p.wrap(text, "    "))
		return
	}
	fmt.Fprintln(p.out, p.wrap(name+": "+text, "  "))
}

func (p *cli) printEffect(e *engine.EffectCompleted) {
	p.section("Effect " + e.Key)
	st := p.styleFor(p.out)
	line := micros(e.Micros)
	if e.Usage != nil {
		line += ", " + usageText(*e.Usage)
	}
	fmt.Fprintln(p.out, "  "+st.dim.Render(line))
	if e.Error != nil {
		fmt.Fprintln(p.out, p.wrap(st.bad.Render(app.Printable(e.Error.Error())), "  "))
	}
	result, output := withoutOutput(e.Result)
	if e.Error == nil && (result != nil || len(output) == 0) {
		fmt.Fprintln(p.out, p.wrap(app.Printable(plain(result)), "  "))
	}
	for _, o := range output {
		text, _ := o.Value.(string)
		fmt.Fprintf(p.out, "  %s:\n%s\n", o.Name, p.wrap(app.Printable(strings.TrimRight(text, "\n")), "    "))
	}
}

// withoutOutput takes what code wrote to its stdout and stderr out of the result of an
// effect. rest is nil where nothing else is left.
func withoutOutput(result engine.Value) (rest engine.Value, output engine.Values) {
	o, ok := result.(map[string]any)
	if !ok {
		return result, nil
	}
	for _, name := range []string{"stdout", "stderr"} {
		if text, ok := o[name].(string); ok && text != "" {
			output = append(output, engine.Named{Name: name, Value: text})
		}
	}
	if len(output) == 0 {
		return result, nil
	}
	left := maps.Clone(o)
	delete(left, "stdout")
	delete(left, "stderr")
	if len(left) == 0 {
		return nil, output
	}
	return left, output
}

func (p *cli) printMessage(m app.ContextMessage) {
	st := p.styleFor(p.out)
	text := m.Text
	for _, c := range m.Calls {
		text = strings.TrimPrefix(text+"\ncalls "+c.Name+" "+c.Arguments, "\n")
	}
	fmt.Fprintf(p.out, "  %s %s\n%s\n", st.dim.Render(m.Context), string(m.Role), p.wrap(app.Printable(text), "    "))
}

// withoutNames returns the values whose names are not among others.
func withoutNames(list, others engine.Values) engine.Values {
	return slices.DeleteFunc(slices.Clone(list), func(x engine.Named) bool {
		_, is := others.Get(x.Name)
		return is
	})
}
