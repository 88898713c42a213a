package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// chatOptions are the flags of `weir chat` that other commands do not share.
type chatOptions struct {
	session, thread, user, model, busy string
	fresh                              bool
	inputs                             []string
	file                               string
}

func (p *cli) chatCommand() *cobra.Command {
	o, d := &chatOptions{}, &runDriver{p: p}
	c := &cobra.Command{
		Use:   "chat [FLOW]",
		Short: "Chat with a flow in a session",
		Long: `Chat with a flow. Each line is a message, and each message a round of a session with the
history so far. Without --session, --thread and --new, the session is the active one of
the user and the flow name. FLOW may be omitted with --session.

A line that ends with \ continues on the next line; pasted text is one message. Ctrl-C
cancels the round, not the chat; pressed twice at the prompt, it quits. Questions of the
flow and approvals of tool calls are asked in place. /help lists the commands. To send a
line that begins with /, write // instead.

Without a terminal, each line of stdin is a message, and the chat ends with the input.
With --json, each message prints one object. The exit code is 1 if a round failed, and 3
if a question is open.

Messages that were sent to the session earlier and still wait are answered first, for
example if the chat that sent them died.`,
		Example: `  weir chat examples/talk/flow.yaml
  weir chat support.yaml --user ada --thread invoices --model openai/gpt-5-mini
  printf 'Hello.\nWhere is berth 4?\n' | weir chat examples/talk/flow.yaml --json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("did not expect %q; see `weir chat --help`", args[1])
			}
			return nil
		},
		ValidArgsFunction: p.completeFlows,
		RunE: func(c *cobra.Command, args []string) error {
			return p.chat(c.Context(), strings.Join(args, ""), o, d)
		},
	}
	f := c.Flags()
	f.StringVar(&o.session, "session", "", "continue the `SESSION` with this id, or beginning of an id")
	f.StringVar(&o.thread, "thread", "", "continue or start the user's conversation with this `NAME`")
	f.BoolVar(&o.fresh, "new", false, "start another session")
	f.StringVar(&o.user, "user", "", "the user of the session")
	f.StringVar(&o.model, "model", "", "use `PROVIDER/MODEL` instead of the flow's model")
	f.StringVar(&o.busy, "busy", "", "what to do while another round runs: queue, reject or fork")
	f.StringArrayVarP(&o.inputs, "input", "i", nil, "another input, `NAME=VALUE`; may be repeated")
	f.StringVar(&o.file, "inputs", "", "other inputs from a YAML or JSON `FILE`; -i overrides them")
	f.BoolVar(&p.json, "json", false, "print one JSON object per message on stdout")
	f.StringVar(&d.record, "record", "", "write all model calls to `FILE`")
	f.StringVar(&d.replay, "replay", "", "answer model calls from `FILE`, a recording of --record; call no model")
	_ = c.RegisterFlagCompletionFunc("session", func(c *cobra.Command, _ []string, _ string) (completions, cobra.ShellCompDirective) {
		return p.sessionIDs(c), noFiles
	})
	_ = c.RegisterFlagCompletionFunc("thread", p.completeSessionField(threadOf))
	_ = c.RegisterFlagCompletionFunc("user", p.completeSessionField(userOf))
	_ = c.RegisterFlagCompletionFunc("input", p.completeInputs)
	_ = c.RegisterFlagCompletionFunc("busy", cobra.FixedCompletions(
		[]cobra.Completion{flow.BusyQueue, flow.BusyReject, flow.BusyFork}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// chat is a conversation at the command line. It belongs to one goroutine.
type chat struct {
	p       *cli
	app     *application
	session *weir.Session
	flow    *weir.Flow // nil if the flow of the session is used
	send    weir.SendOptions
	lines   lineSource
	view    *replyView
	// interrupts is what the session's round waits for.
	interrupts []engine.Interrupt
	pending    []session.QueuedMessage // was sent before and has had no turn, the next first
	failed     bool                    // a turn did
}

func (p *cli) chat(ctx context.Context, path string, o *chatOptions, d *runDriver) error {
	if err := o.check(path); err != nil {
		return err
	}
	c := &chat{p: p}
	if err := c.open(ctx, path, o, d); err != nil {
		return err
	}
	defer c.app.close() //nolint:errcheck // what was said is durable
	c.lines = p.lineSource(c.history(ctx), func() []string { return c.sessionIDs(ctx) })
	c.view = &replyView{p: p}
	c.printHistory(ctx)
	err := c.loadPending(ctx)
	if err == nil {
		c.notePending()
		if !p.json {
			c.printQuestion()
		}
		err = c.loop(ctx)
	}
	if closeErr := c.app.close(); err == nil {
		err = closeErr
	}
	if err != nil || c.lines.interactive() {
		return err
	}
	return c.exitError()
}

// exitError returns the exit code of a chat whose lines came from elsewhere than a
// terminal: 1 where a turn failed, 3 where a question is left open.
func (c *chat) exitError() error {
	switch {
	case c.failed:
		return &exitError{exitFailed}
	case len(c.interrupts) > 0:
		if !c.p.json {
			c.p.notef("session %s waits for an answer; continue with: %s", c.session.ID, c.p.commandLine("chat", "--session", c.session.ID))
		}
		return &exitError{exitPaused}
	}
	return nil
}

func (o *chatOptions) check(path string) error {
	switch {
	case path == "" && o.session == "":
		return usagef("expected FLOW, or --session; see `weir chat --help`")
	case o.session != "" && (o.thread != "" || o.fresh):
		return usagef("--session names one; --thread and --new look for another")
	case o.busy != "" && o.busy != flow.BusyQueue && o.busy != flow.BusyReject && o.busy != flow.BusyFork:
		return usagef("--busy: expected queue, reject or fork, not %q", o.busy)
	}
	return nil
}

// open reads all that it is given before it opens the database for writing, and
// finds the session.
func (c *chat) open(ctx context.Context, path string, o *chatOptions, d *runDriver) error {
	p := c.p
	what := app.Options{Record: d.record, Replay: d.replay}
	var err error
	if path != "" {
		if c.flow, err = p.loadFlow(path); err != nil {
			return err
		}
		what.Flow = c.flow
		c.send.Model = cmp.Or(o.model, c.flow.Context.Model)
		if c.send.Inputs, err = p.otherInputs(c.flow, o); err != nil {
			return err
		}
	} else if what.Run, c.send.Model, err = p.lastRound(ctx, o); err != nil {
		return err
	}
	if c.send.Model, err = app.ResolveScript(c.send.Model, path, d.replay == ""); err != nil {
		return err
	}
	c.send.By, c.send.Busy, c.send.Origin = cmp.Or(o.user, p.userName()), o.busy, "chat"
	if c.app, err = p.open(ctx, what); err != nil {
		return err
	}
	if o.model != "" && d.replay == "" {
		err = c.app.checkModel(o.model)
	}
	if err == nil {
		err = c.find(ctx, o)
	}
	if err != nil {
		return errors.Join(err, c.app.close())
	}
	return nil
}

// otherInputs returns the flow's inputs that come with no message.
func (p *cli) otherInputs(f *weir.Flow, o *chatOptions) (map[string]any, error) {
	if o.file == "" && len(o.inputs) == 0 {
		return nil, nil
	}
	return p.inputs(f, o.file, o.inputs)
}

// lastRound returns the newest round of the session that continues without a
// flow, and the model that it had.
func (p *cli) lastRound(ctx context.Context, o *chatOptions) (run, model string, err error) {
	err = p.withSession(ctx, o.session, func(ctx context.Context, a *application, s *store.Session) error {
		rounds, err := a.Runs(ctx, store.Filter{Session: s.ID, Limit: 1})
		if err != nil {
			return err
		}
		if len(rounds) == 0 {
			return usagef("session %s has had no round: name the flow, `weir chat FLOW --session %s`", s.ID, s.ID)
		}
		v, err := a.Inspect(ctx, rounds[0].ID, 0)
		if err != nil {
			return err
		}
		run, model = rounds[0].ID, app.ModelOf(v.Contexts[engine.MainContext].Settings)
		return nil
	})
	return run, cmp.Or(o.model, model), err
}

// find finds the session or begins it.
func (c *chat) find(ctx context.Context, o *chatOptions) error {
	so := weir.SessionOptions{User: o.user, Thread: o.thread, New: o.fresh}
	if o.session != "" {
		id, err := c.app.FindSession(ctx, o.session)
		if err != nil {
			return unknownSession(err)
		}
		so = weir.SessionOptions{ID: id, User: o.user}
	}
	var err error
	c.session, err = c.app.Session(ctx, c.flow, so)
	if errors.Is(err, store.ErrNotFound) {
		return unknownSession(err)
	}
	if errors.Is(err, store.ErrExists) {
		return usagef("--new --thread %s: a session of that thread exists; leave out --new to continue it", o.thread)
	}
	return err
}

// loop reads lines until the input ends or the person quits.
func (c *chat) loop(ctx context.Context) error {
	quitting := false
	for {
		if err := c.answerPending(ctx); err != nil {
			return err
		}
		text, err := c.read(ctx)
		switch {
		case errors.Is(err, errInterrupted):
			if quitting {
				return nil
			}
			quitting = true
			c.p.notef("%s", c.p.style().dim.Render("(press Ctrl-C again to quit, or type /quit)"))
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		quitting = false
		if strings.TrimSpace(text) == "" && len(c.interrupts) == 0 {
			continue
		}
		if quit, err := c.handleLine(ctx, text); quit || err != nil {
			return err
		}
	}
}

// read reads one message: lines that end with \ continue on the next.
func (c *chat) read(ctx context.Context) (string, error) {
	prompt := "> "
	if len(c.interrupts) > 0 {
		prompt = "? "
	}
	var whole strings.Builder
	for {
		line, err := c.lines.read(ctx, prompt)
		if err != nil {
			if errors.Is(err, io.EOF) && whole.Len() > 0 {
				return whole.String(), nil
			}
			return "", err
		}
		part, more := strings.CutSuffix(line, `\`)
		whole.WriteString(part)
		if !more {
			return whole.String(), nil
		}
		whole.WriteByte('\n')
		prompt = "… "
	}
}

// handleLine does what one line says.
func (c *chat) handleLine(ctx context.Context, text string) (quit bool, err error) {
	if rest, ok := strings.CutPrefix(text, "//"); ok {
		text = "/" + rest
	} else if strings.HasPrefix(text, "/") {
		return c.command(ctx, text)
	}
	turn, err := c.sendLine(ctx, text)
	if err == nil {
		err = c.showReply(ctx, turn)
	}
	return false, c.reportError(ctx, err)
}

// reportError prints an error, which ends the turn and not the chat, unless the chat
// is to end.
func (c *chat) reportError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if s, ok := errors.AsType[*errSignal](context.Cause(ctx)); ok {
		return &exitError{s.code()}
	}
	c.failed = true
	if _, gone := c.session.Info(ctx); errors.Is(gone, store.ErrNotFound) {
		err = sessionNotFound(fmt.Errorf("session %s was deleted: %w", c.session.ID, store.ErrNotFound))
	}
	if c.p.json {
		writeJSON(c.p.out, replyReport{
			Session: c.session.ID, Status: "refused", Outputs: engine.Values{}, Messages: []app.MessageRow{}, Interrupts: app.InterruptsOf(c.interrupts),
			Error: &engine.Error{Code: app.ErrorCode(err), Message: err.Error(), Hint: hint(err)},
		})
		return nil
	}
	c.p.notef("%s", c.p.style().bad.Render(app.Printable(err.Error())))
	if h := hint(err); h != "" {
		c.p.notef("  %s", h)
	}
	return nil
}

// sendLine sends what was said, or answers with it what is open. A line of a file is
// no answer to the question what became of an effect.
func (c *chat) sendLine(ctx context.Context, text string) (*weir.Reply, error) {
	if len(c.interrupts) > 0 && c.interrupts[0].Kind == engine.AwaitEffect && !c.lines.interactive() {
		return c.session.Send(ctx, text, c.send)
	}
	if n := len(c.interrupts); n == 0 || n == 1 && c.interrupts[0].Kind == engine.AwaitInput {
		if n == 1 { // also a choice by its number
			v, err := parseAnswer(c.interrupts[0], text)
			if err != nil {
				return nil, &usageError{Err: err}
			}
			return c.session.Send(ctx, v, c.send)
		}
		return c.session.Send(ctx, text, c.send)
	}
	v, err := parseAnswer(c.interrupts[0], text)
	if err != nil {
		return nil, &usageError{Err: err}
	}
	return c.session.Answer(ctx, c.interrupts[0].ID, v, c.send)
}

// showReply shows a turn as it goes, and what has come of it. Ctrl-C cancels it; the
// second time the command does not wait for its end.
func (c *chat) showReply(ctx context.Context, turn *weir.Reply) error {
	wait, stopWaiting := context.WithCancel(ctx)
	defer stopWaiting()
	times := 0
	off := onInterrupt(ctx, func() {
		if times++; times > 1 {
			stopWaiting()
			return
		}
		c.view.notice("cancelling the round; press Ctrl-C again to stop waiting for it")
		go turn.Cancel(context.WithoutCancel(ctx), "Ctrl-C") //nolint:errcheck // the turn prints the result
	})
	defer off()
	if turn.Session.ID != c.session.ID {
		c.session = turn.Session
		if !c.p.json {
			c.p.notef("%s", c.p.style().dim.Render("another round is running; this message continues in a fork, session "+c.session.ID))
		}
	}
	c.view.start()
	for item, err := range turn.Items(wait) {
		if err != nil {
			break // Wait says why
		}
		c.view.item(item)
	}
	state, err := turn.Wait(wait)
	if err != nil {
		c.view.complete(nil)
		if ctx.Err() == nil && wait.Err() != nil {
			c.p.notef("the round is being cancelled; %s", c.p.commandLine("show", turn.Run()))
			return nil
		}
		return err
	}
	c.interrupts = state.Interrupts
	c.failed = c.failed || state.Status == engine.Failed
	c.view.complete(&state)
	if !c.p.json {
		c.printQuestion()
	}
	return nil
}

// printQuestion puts what the session waits for, the first of several.
func (c *chat) printQuestion() {
	if len(c.interrupts) == 0 {
		return
	}
	st, i := c.p.style(), c.interrupts[0]
	c.p.discardTyped()
	prompt, help := promptOf(i)
	if i.Event != "" && i.Kind == engine.AwaitEvent {
		prompt = strings.TrimSpace(prompt + " (waits for the event " + i.Event + ")")
	}
	c.p.notef("%s %s", st.ask.Render("?"), st.bold.Render(app.Printable(cmp.Or(prompt, i.ID))))
	if help != "" {
		c.p.notef("  %s", st.dim.Render(help))
	}
	for n, choice := range choices(i.Schema) {
		c.p.notef("  %s %s", st.dim.Render(fmt.Sprintf("%d.", n+1)), app.Printable(choice))
	}
	if more := len(c.interrupts) - 1; more > 0 {
		c.p.notef("  %s", st.dim.Render(fmt.Sprintf("and %s after it", count(more, "question"))))
	}
}

// refreshInterrupts finds out what the session waits for.
func (c *chat) refreshInterrupts(ctx context.Context) {
	c.interrupts = nil
	row, err := c.session.Info(ctx)
	if err != nil || row.Holder == "" {
		return
	}
	if r, err := c.app.Store.Run(ctx, row.Holder); err == nil && r.Head.Status == engine.Paused {
		c.interrupts = r.Head.Waiting
	}
}
