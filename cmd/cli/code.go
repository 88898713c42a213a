package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/node/codegen"
	"github.com/weir-run/weir/node/codegen/learned"
	"github.com/weir-run/weir/store"
)

// codeRow is a learned program as `weir code list --json` prints it.
type codeRow struct {
	ID          string               `json:"id"`
	User        string               `json:"user"` // "" for runs without a user
	Flow        string               `json:"flow"`
	Node        string               `json:"node"`
	Task        string               `json:"task"`
	Language    string               `json:"language"`
	Model       string               `json:"model"`
	State       codegen.LearnedState `json:"state"`
	Used        bool                 `json:"used"` // by the next run with this task
	Uses        int64                `json:"uses"`
	Successes   int64                `json:"successes"`
	Reliability float64              `json:"reliability"`
	Run         string               `json:"run"`
	Confirmed   string               `json:"confirmed"` // the run that confirmed it, "" for a candidate
	Written     time.Time            `json:"written"`
}

// codeReport is one as `weir code show --json` prints it.
type codeReport struct {
	codeRow
	Code string `json:"code"`
}

func codeRowOf(l *codegen.Learned) codeRow {
	return codeRow{
		l.ID, l.User, l.Flow, l.Node, l.Task, l.Language, l.Model, l.State, l.Active(), l.Uses, l.Successes, l.Reliability(), l.Run, l.Confirmed, l.At.UTC(),
	}
}

// codeFilter are the flags that say which programs.
type codeFilter struct {
	learned.Filter
	state string
	json  bool
}

func (o *codeFilter) check() error {
	o.State = codegen.LearnedState(o.state)
	if o.State != "" && !slices.Contains(codeStates(), o.state) {
		return usagef("--state %s: expected %s", o.state, strings.Join(codeStates(), ", "))
	}
	return nil
}

func codeStates() []string {
	return []string{string(codegen.LearnedCandidate), string(codegen.LearnedAccepted), string(codegen.LearnedDisabled)}
}

func (p *cli) codeFlags(c *cobra.Command, o *codeFilter) {
	f := c.Flags()
	f.StringVar(&o.User, "user", "", "only programs learned for this `USER`")
	f.StringVar(&o.Flow, "flow", "", "only programs learned for the flow with this `NAME`")
	f.StringVar(&o.state, "state", "", "only programs in this `STATE`: "+strings.Join(codeStates(), ", "))
	f.BoolVar(&o.json, "json", false, "print JSON")
	_ = c.RegisterFlagCompletionFunc("user", p.completeLearned(func(l *codegen.Learned) string { return l.User }))
	_ = c.RegisterFlagCompletionFunc("flow", p.completeLearned(func(l *codegen.Learned) string { return l.Flow }))
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(codeStates(), noFiles))
}

func (p *cli) codeCommand() *cobra.Command {
	o := &codeFilter{}
	list := func(c *cobra.Command, _ []string) error { return p.listCode(c.Context(), o) }
	c := &cobra.Command{
		Use:   "code",
		Short: "List, show, disable and delete learned code",
		Long: `Learned code is programs that models wrote for code nodes with a prompt, and that are
used again. Each belongs to one user, one flow and one task. A candidate is used only
after it gave the same result for other values. A program that fails too often is not
used; models write a new one.

Without a subcommand, the command lists the programs. A CODE in the commands below may be
the beginning of its id.`,
		Example: `  weir code list --user ada
  weir code show 3f2a
  weir code disable 3f2a`,
		Args: exactArgs(),
		RunE: list,
	}
	p.codeFlags(c, o)
	listing := &cobra.Command{Use: "list", Short: "List learned code, newest first", Args: exactArgs(), RunE: list}
	p.codeFlags(listing, o)
	c.AddCommand(listing, p.showCodeCommand(), p.switchCodeCommand("disable"), p.switchCodeCommand("enable"), p.deleteCodeCommand())
	return c
}

func (p *cli) listCode(ctx context.Context, o *codeFilter) error {
	if err := o.check(); err != nil {
		return err
	}
	list, err := p.learned(ctx, o.Filter)
	if err != nil {
		return err
	}
	p.printLearned(list, o.json)
	return nil
}

// learned lists what was learned: nothing if there is no database.
func (p *cli) learned(ctx context.Context, f learned.Filter) ([]codegen.Learned, error) {
	a, err := p.openReadOnly(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer a.close() //nolint:errcheck // it only read
	return a.LearnedCode().List(ctx, f)
}

func (p *cli) printLearned(list []codegen.Learned, asJSON bool) {
	now, t := time.Now(), p.table("CODE STATE USES WELL USER FLOW NODE WRITTEN TASK", "NODE", "WRITTEN", "WELL", "FLOW")
	printList(p, list, asJSON, codeRowOf, "no code was learned", t, func(l *codegen.Learned) []string {
		return []string{
			l.ID, codeState(l), fmt.Sprint(l.Uses), percent(l), textOrDash(app.Printable(l.User)), app.Printable(l.Flow),
			app.Printable(l.Node), ago(now.Sub(l.At)), shorten(l.Task, 200),
		}
	})
}

// codeState returns a program's state for people.
func codeState(l *codegen.Learned) string {
	if l.State == codegen.LearnedAccepted && !l.Active() {
		return "unreliable"
	}
	return string(l.State)
}

// percent returns how many of its uses went well.
func percent(l *codegen.Learned) string {
	if l.Uses == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*l.Reliability())
}

// findLearned finds a program by the beginning of its id.
func (a *application) findLearned(ctx context.Context, prefix string) (codegen.Learned, error) {
	l, err := a.LearnedCode().Find(ctx, prefix)
	if errors.Is(err, store.ErrNotFound) {
		err = &notFoundError{err, "code list", "learned programs"}
	} else if err != nil {
		err = &usageError{Err: err}
	}
	return l, err
}

func (p *cli) showCodeCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:               "show CODE",
		Short:             "Show a learned program: its code, origin and uses",
		Args:              exactArgs("CODE"),
		ValidArgsFunction: p.completeCode,
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.openReadOnly(c.Context())
			if err != nil {
				return err
			}
			defer a.close() //nolint:errcheck // it only read
			l, err := a.findLearned(c.Context(), args[0])
			if err != nil {
				return err
			}
			p.printCode(&l, asJSON)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (p *cli) printCode(l *codegen.Learned, asJSON bool) {
	if asJSON {
		writeJSON(p.out, codeReport{codeRowOf(l), l.Code})
		return
	}
	st := p.styleFor(p.out)
	fmt.Fprintf(p.out, "%s  %s\n", st.bold.Render(l.ID), codeState(l))
	for _, f := range []struct{ name, value string }{
		{"user", l.User},
		{"flow", l.Flow},
		{"node", l.Node},
		{"language", l.Language},
		{"model", l.Model},
		{"written in run", l.Run},
		{"confirmed in run", l.Confirmed},
		{"written", l.At.Format("2006-01-02 15:04:05")},
	} {
		if f.value != "" {
			fmt.Fprintf(p.out, "%-17s %s\n", f.name, app.Printable(f.value))
		}
	}
	fmt.Fprintf(p.out, "%-17s %s, %d of them did what was asked\n", "used", times(l.Uses), l.Successes)
	section := func(name, text string) {
		fmt.Fprintf(p.out, "\n%s\n%s\n", st.dim.Render(name), indent(strings.TrimRight(app.Printable(text), "\n"), "  "))
	}
	section("task", l.Task)
	section("code", l.Code)
}

func times(n int64) string { return count(n, "time") }

// switchCodeCommand is `weir code disable` or `enable`.
func (p *cli) switchCodeCommand(verb string) *cobra.Command {
	o := struct{ json bool }{}
	long := map[string]string{
		"disable": `Disable learned programs. Models then write the code of their tasks in each run, and no
other program is learned for them until "weir code enable". To let Weir learn a new
program, delete the old one.`,
		"enable": `Enable disabled programs. A confirmed program is used again, and the count of its
uses starts from zero.`,
	}[verb]
	c := &cobra.Command{
		Use:               verb + " CODE...",
		Short:             map[string]string{"disable": "Disable learned programs", "enable": "Enable disabled programs"}[verb],
		Long:              long,
		ValidArgsFunction: p.completeCode,
		Args:              atLeastOneCode,
		RunE: func(c *cobra.Command, args []string) error {
			return p.switchCode(c.Context(), verb, args, o.json)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "print the programs as JSON")
	return c
}

func atLeastOneCode(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("expected CODE...")
	}
	return nil
}

func (p *cli) switchCode(ctx context.Context, verb string, prefixes []string, asJSON bool) error {
	a, err := p.openReadOnly(ctx)
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // what it did is durable
	found, err := a.findAllLearned(ctx, prefixes)
	if err != nil {
		return err
	}
	do := a.LearnedCode().Disable
	if verb == "enable" {
		do = a.LearnedCode().Enable
	}
	var rows []codeRow
	for i := range found {
		changed, err := do(ctx, found[i].ID)
		if err != nil {
			return err
		}
		now, err := a.findLearned(ctx, found[i].ID)
		if err != nil {
			return err
		}
		if rows = append(rows, codeRowOf(&now)); !asJSON {
			printSwitched(p.out, verb, &now, changed)
		}
	}
	if asJSON {
		writeJSON(p.out, rows)
	}
	return nil
}

func printSwitched(out io.Writer, verb string, l *codegen.Learned, changed bool) {
	if changed {
		fmt.Fprintf(out, "%sd %s (%s)\n", verb, l.ID, codeState(l))
		return
	}
	fmt.Fprintf(out, "%s was not changed: it is %s\n", l.ID, codeState(l))
}

// findAllLearned finds programs by the beginnings of their ids, each once.
func (a *application) findAllLearned(ctx context.Context, prefixes []string) (list []codegen.Learned, err error) {
	for _, prefix := range prefixes {
		l, err := a.findLearned(ctx, prefix)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(x codegen.Learned) bool { return x.ID == l.ID }) {
			list = append(list, l)
		}
	}
	return list, nil
}

// completeCode offers learned programs.
func (p *cli) completeCode(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	if len(args) > 0 && c.Name() == "show" {
		return nil, noFiles
	}
	list, err := p.learned(contextOf(c), learned.Filter{})
	if err != nil {
		return nil, noFiles
	}
	var out completions
	for i := range list {
		out = append(out, cobra.CompletionWithDesc(list[i].ID, codeState(&list[i])+": "+shorten(list[i].Task, 40)))
	}
	return out, noFiles
}

// completeLearned offers what learned programs have of something.
func (p *cli) completeLearned(of func(*codegen.Learned) string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) (completions, cobra.ShellCompDirective) {
		list, err := p.learned(contextOf(c), learned.Filter{})
		if err != nil {
			return nil, noFiles
		}
		return distinct(list, of), noFiles
	}
}

// distinct returns what the elements of a list have of something, each text once.
func distinct[T any](list []T, of func(*T) string) (out completions) {
	for i := range list {
		if s := of(&list[i]); s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
