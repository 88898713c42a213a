package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
)

func (p *cli) answerCommand() *cobra.Command {
	d := &runDriver{p: p}
	c := &cobra.Command{
		Use:   "answer RUN INTERRUPT [VALUE]",
		Short: "Answer a question of a paused run, and continue the run",
		Long: `Answer a question of a paused run, and continue the run as "weir run" does.

VALUE is text, or JSON if the schema of the question requires it. For a waitEvent without
a schema it is JSON if it is an object or a list. @FILE reads the value from a file, @-
from stdin. Put a value that begins with - after --.

  question about          VALUE
  the call of a tool      approve, reject, or {"approve": false, "reason": "..."}
  a budget                an increase such as {"maxTokens": 10000} (maxTokens, maxCalls,
                          maxCost in US dollars), or stop
  a breakpoint            none

RUN may be the beginning of a run id. INTERRUPT is the id that "weir run" and "weir show"
print. If a node waits for only one thing, the path of the node works too; for a node in
a child run, its path from the root.`,
		Example: `  weir answer 01kafw ask:ask#1 approve
  weir answer 01kafw ask 42 --json`,
		Args:              answerArgs,
		ValidArgsFunction: p.completeAnswer,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 && p.mustExist() != nil { // nothing waits at a breakpoint
				return usagef("expected VALUE; see `weir answer --help`")
			}
			return p.answer(c.Context(), args, d)
		},
	}
	d.flags(c)
	d.acceptFlag(c)
	return c
}

func (p *cli) answer(ctx context.Context, args []string, d *runDriver) error {
	return p.driveAfter(ctx, args[0], d, func(a *application, id string, v *runner.RunView) (*weir.Run, error) {
		i, err := openInterrupt(v.Run, args[1])
		if err != nil {
			return nil, err
		}
		if len(args) == 2 {
			if i.Kind != engine.AwaitBreak {
				return nil, usagef("%s waits for an answer: expected VALUE; see `weir answer --help`", i.ID)
			}
			args = append(args, "")
		}
		text := args[2]
		if len(text) > 1 && text[0] == '@' {
			s, err := p.inputValue("text", text)
			if err != nil {
				return nil, &usageError{Err: err}
			}
			text, _ = s.(string)
		}
		value, err := parseAnswer(i, text)
		if err != nil {
			return nil, &usageError{Err: err}
		}
		return a.Answer(ctx, id, i.ID, value, p.userName())
	})
}

// answerArgs takes a run, what it waits for and mostly an answer.
func answerArgs(c *cobra.Command, args []string) error {
	if len(args) == 2 {
		return nil
	}
	return exactArgs("RUN", "INTERRUPT", "VALUE")(c, args)
}

// openInterrupt finds what a run waits for, by id or by the path of the one
// node that waits, from the root or from the child run that it is in.
func openInterrupt(r *engine.Run, id string) (engine.Interrupt, error) {
	if i, _, ok := r.Interrupt(id); ok {
		return i, nil
	}
	for _, fits := range []func(i, path string) bool{
		func(i, _ string) bool { return strings.HasPrefix(i, id+":") },                     // in one of several child runs of a node
		func(_, path string) bool { return path == id || strings.HasPrefix(path, id+">") }, // in a child run of the node
		func(_, path string) bool { return strings.HasSuffix(path, ">"+id) },               // as the child run calls it
	} {
		var found []engine.Interrupt
		for _, i := range r.Interrupts() {
			if fits(i.ID, history.NodeOfInterrupt(i.ID)) {
				found = append(found, i)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return engine.Interrupt{}, errNoInterrupt("%q names several questions of run %s: give the id of one of %s", id, r.ID, interruptIDs(found))
		}
	}
	if r.Status() != engine.Paused {
		return engine.Interrupt{}, errNoInterrupt("run %s is %s and waits for nothing", r.ID, r.Status())
	}
	return engine.Interrupt{}, errNoInterrupt("run %s does not wait for %q; it waits for %s", r.ID, id, interruptIDs(r.Interrupts()))
}

// errNoInterrupt returns the error of an answer to a question that is not open.
func errNoInterrupt(format string, args ...any) error {
	return &notFoundInterrupt{fmt.Errorf(format, args...)}
}

// notFoundInterrupt is such an error. Its message says all that runner.ErrNoInterrupt says.
type notFoundInterrupt struct{ err error }

// Error implements error.
func (e *notFoundInterrupt) Error() string { return e.err.Error() }

// Unwrap says what kind of error it is.
func (e *notFoundInterrupt) Unwrap() error { return runner.ErrNoInterrupt }

func interruptIDs(list []engine.Interrupt) string {
	ids := make([]string, len(list))
	for n, i := range list {
		ids[n] = i.ID
	}
	return strings.Join(ids, ", ")
}

// driveAfter opens a run, applies a command that continues it here, and drives
// it.
func (p *cli) driveAfter(ctx context.Context, prefix string, d *runDriver,
	do func(a *application, id string, v *runner.RunView) (*weir.Run, error),
) error {
	a, id, err := p.openRun(ctx, prefix, app.Options{Record: d.record, Replay: d.replay, Run: prefix})
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // drive has closed it where that matters
	if err := d.acceptChanges(ctx, a, id); err != nil {
		return err
	}
	v, err := a.Inspect(ctx, id, 0)
	if err != nil {
		return err
	}
	for _, n := range v.Run.Nodes() {
		if p := v.Run.Plan().Find(n.Path); n.Status == engine.Running && p != nil && p.Def.Body == nil {
			d.runningNodes = append(d.runningNodes, n.Path)
		}
	}
	cursor, err := a.Cursor(ctx, id)
	if err != nil {
		return err
	}
	run, err := do(a, id, v)
	if err != nil {
		return err
	}
	return d.drive(ctx, a, run, position{cursor: cursor})
}

// userName returns who is said to have done what this command does.
func (p *cli) userName() string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if u, ok := p.env(name); ok && u != "" {
			return u
		}
	}
	return "cli"
}

func (p *cli) resumeCommand() *cobra.Command {
	d := &runDriver{p: p}
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that was stopped or whose process died",
		Long: `Continue a run that was stopped, or whose process died. Completed effects are not
repeated. A run that is paused at breakpoints continues past all of them. For a run that
waits for an answer, the command prints the questions.`,
		Args:              exactArgs("RUN"),
		ValidArgsFunction: p.completeRuns,
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			return p.driveAfter(ctx, args[0], d, func(a *application, id string, v *runner.RunView) (*weir.Run, error) {
				return p.resumePastBreakpoints(ctx, a, id, v)
			})
		},
	}
	d.flags(c)
	d.acceptFlag(c)
	return c
}
