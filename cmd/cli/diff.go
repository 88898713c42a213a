package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
)

func (p *cli) diffCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs: flow, inputs, path, messages, state, outputs, cost",
		Long: `Compare two runs: their flows, inputs, outputs, state and usage, the nodes with a
different end or result, the first different event, and the messages after the common
ones. Durations and ids of child runs are not compared. For forks, the shared past is
printed.

Exit codes, as of diff(1): 0 no differences, 1 differences, 2 an error.`,
		Example: `  weir diff 01kafw 01kag2
  weir diff 01kafw 01kag2 --json`,
		Args: exactArgs("RUN", "RUN"),
		ValidArgsFunction: func(c *cobra.Command, args []string, prefix string) (completions, cobra.ShellCompDirective) {
			if len(args) > 1 {
				return nil, noFiles
			}
			return p.completeRuns(c, nil, prefix)
		},
	}
	c.Flags().BoolVar(&p.json, "json", false, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := p.diff(c.Context(), args[0], args[1]); err != nil {
			return diffError(err)
		}
		return nil
	}
	return c
}

// diffError returns an error that ends `weir diff` with 2: 1 says that runs differ.
func diffError(err error) error {
	if e, ok := err.(*exitError); ok { //nolint:errorlint // it is made here and never wrapped
		return e
	}
	return &usageError{Err: err}
}

func (p *cli) diff(ctx context.Context, first, second string) error {
	a, err := p.openReadOnly(ctx)
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // it only read
	if first, err = a.find(ctx, first); err != nil {
		return err
	}
	if second, err = a.find(ctx, second); err != nil {
		return err
	}
	d, err := a.Diff(ctx, first, second)
	if err != nil {
		return err
	}
	if p.json {
		writeJSON(p.out, app.DiffReportOf(d))
	} else {
		(&diffPrinter{p: p, d: d, st: p.styleFor(p.out)}).print()
	}
	if !d.Same {
		return &exitError{exitFailed}
	}
	return nil
}

// diffPrinter shows a diff for people.
type diffPrinter struct {
	p  *cli
	d  *history.Diff
	st style
}

func (w *diffPrinter) print() {
	d := w.d
	if d.Same {
		w.line("runs %s and %s are the same", d.A.Run, d.B.Run)
		w.shared()
		return
	}
	w.minus("", fmt.Sprintf("run %s  %s  %s", d.A.Run, d.A.Flow, d.A.Status))
	w.plus("", fmt.Sprintf("run %s  %s  %s", d.B.Run, d.B.Flow, d.B.Status))
	w.shared()
	if d.A.User != d.B.User {
		w.title("user")
		w.pair("", d.A.User, d.B.User, true, true)
	}
	w.flow()
	w.values("inputs", d.Inputs)
	w.nodes()
	w.first()
	for _, c := range d.Contexts {
		w.messages(c)
	}
	w.values("state", d.State)
	w.values("outputs", d.Outputs)
	w.failures()
	w.usage()
}

func (w *diffPrinter) line(format string, args ...any) { fmt.Fprintf(w.p.out, format+"\n", args...) }

func (w *diffPrinter) title(format string, args ...any) {
	fmt.Fprintln(w.p.out, w.st.bold.Render(fmt.Sprintf(format, args...)))
}

func (w *diffPrinter) minus(indent, text string) { w.signed(indent+"- ", text, false) }
func (w *diffPrinter) plus(indent, text string)  { w.signed(indent+"+ ", text, true) }

// signed prints a text line by line behind a sign.
func (w *diffPrinter) signed(sign, text string, second bool) {
	look := w.st.bad
	if second {
		look = w.st.good
	}
	for l := range strings.SplitSeq(app.Printable(text), "\n") {
		fmt.Fprintln(w.p.out, look.Render(sign+l))
	}
}

func (w *diffPrinter) shared() {
	if s := w.d.Shared; s != nil {
		w.line("both share the past of run %s up to event %d", s.Run, s.At)
	}
}

// pair shows what each run has of something.
func (w *diffPrinter) pair(indent string, a, b any, inA, inB bool) {
	if inA {
		w.minus(indent, textForDiff(a))
	}
	if inB {
		w.plus(indent, textForDiff(b))
	}
}

// textForDiff returns a value as a line or more: text as it stands, the rest as JSON.
func textForDiff(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(app.JSONOf(v))
}

func (w *diffPrinter) flow() {
	if len(w.d.Flow) > 0 {
		w.title("flow")
	}
	for _, f := range w.d.Flow {
		switch {
		case f.Node != "" && f.Key == "" && f.InA:
			w.minus("  ", "node "+f.Node)
		case f.Node != "" && f.Key == "":
			w.plus("  ", "node "+f.Node)
		case strings.HasPrefix(f.Key, "edge ") && f.InA != f.InB:
			if f.InA {
				w.minus("  ", f.Key)
			} else {
				w.plus("  ", f.Key)
			}
		default:
			place := f.Key
			if f.Node != "" {
				place = "node " + f.Node + ": " + f.Key
			}
			w.line("  %s", place)
			w.pair("    ", f.A, f.B, f.InA, f.InB)
		}
	}
}

func (w *diffPrinter) values(what string, list []history.ValueDifference) {
	if len(list) > 0 {
		w.title("%s", what)
	}
	for _, v := range list {
		w.line("  %s", v.Name)
		w.pair("    ", v.A, v.B, v.InA, v.InB)
	}
}

func (w *diffPrinter) nodes() {
	if len(w.d.Nodes) > 0 {
		w.title("path")
	}
	for _, n := range w.d.Nodes {
		a, b := statusText(n.A, n.AttemptsA, n.ReachedA), statusText(n.B, n.AttemptsB, n.ReachedB)
		if a != b {
			w.line("  %s: %s, %s", n.Path, w.st.bad.Render(a), w.st.good.Render(b))
		} else {
			w.line("  %s: %s, with other outputs", n.Path, a)
		}
		for _, o := range n.Outputs {
			if _, handle := o.A.(engine.Handle); handle && !o.InB {
				continue
			}
			w.line("    %s", o.Name)
			if o.InA {
				w.minus("      ", shorten(textForDiff(o.A), 400))
			}
			if o.InB {
				w.plus("      ", shorten(textForDiff(o.B), 400))
			}
		}
	}
}

// statusText returns how far a run came with a node.
func statusText(s engine.Status, attempts int, there bool) string {
	switch {
	case !there:
		return "never reached"
	case attempts > 1:
		return fmt.Sprintf("%s in attempt %d", s, attempts)
	}
	return s.String()
}

func (w *diffPrinter) first() {
	f := w.d.First
	if f == nil {
		return
	}
	w.title("first event that differs")
	for _, s := range []struct {
		e      engine.Event
		number int64
		second bool
	}{{f.A, f.NumberA, false}, {f.B, f.NumberB, true}} {
		text := "none: the other has all of these"
		if s.e != nil {
			text = strings.TrimSpace(fmt.Sprintf("%d %s %s", s.number, s.e.Kind(), engine.EventPath(s.e)))
		}
		if s.second {
			w.plus("  ", text)
		} else {
			w.minus("  ", text)
		}
	}
}

func (w *diffPrinter) messages(c history.ContextDifference) {
	same := "no message is the same"
	if c.Common > 0 {
		same = count(c.Common, "message") + " the same"
	}
	w.title("messages of %s: %s, then %d and %d", c.ID, same, len(c.A), len(c.B))
	for _, m := range c.A {
		w.minus("  ", textOfMessage(m))
	}
	for _, m := range c.B {
		w.plus("  ", textOfMessage(m))
	}
}

// textOfMessage returns a message as a listing of differences shows it.
func textOfMessage(m convo.Message) string {
	var b strings.Builder
	b.WriteString(string(m.Role) + ": " + shorten(m.Text, 400))
	for _, c := range m.Calls {
		fmt.Fprintf(&b, " [calls %s %s]", c.Name, shorten(c.Arguments, 80))
	}
	return b.String()
}

func (w *diffPrinter) failures() {
	a, b := w.d.A.Error, w.d.B.Error
	if a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error() {
		return
	}
	w.title("failure")
	if a != nil {
		w.minus("  ", a.Error())
	}
	if b != nil {
		w.plus("  ", b.Error())
	}
}

func (w *diffPrinter) usage() {
	if w.d.A.Usage == w.d.B.Usage {
		return
	}
	w.title("spent, the shared past included")
	w.minus("  ", spentText(w.d.A.Usage))
	w.plus("  ", spentText(w.d.B.Usage))
}
