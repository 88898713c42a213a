package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// sendOptions are the flags of `weir send` that other commands do not share.
type sendOptions struct {
	chatOptions
	flow, id           string
	edit, regenerate   string // numbers of messages
	edits, regenerates bool   // whether they were given
	noWait             bool
	steer, interrupt   bool
	node               string
}

func (p *cli) sendCommand() *cobra.Command {
	o, d := &sendOptions{}, &runDriver{p: p}
	c := &cobra.Command{
		Use:   "send SESSION [TEXT]",
		Short: "Send one message to a session and print the reply",
		Long: `Send one message to a session and print the reply. Messages that were sent earlier are
answered first. If the session waits for an answer to a question, TEXT is the answer. The
exit code is 1 if the round failed, and 3 if a question is open then.

With --id, sending the message again does not repeat it: the command prints the reply to
the first one. With --no-wait, the message is stored and the command ends. "weir chat
--session SESSION", the next "weir send", or a process that recovers sessions starts the
round.

With --edit N, TEXT takes the place of message N of the person: it is sent in a fork of the
session that ends before that message. With --regenerate N, or "last", message N is sent again
in such a fork, and TEXT is left out. The session itself does not change. "weir sessions show
SESSION --messages" has the numbers of the messages.

With --steer, TEXT is for the round that runs, whichever process executes it: the next model
call of its agent takes it. If several nodes work, --node names one. --interrupt also ends the
model's answer where it is; TEXT may then be left out. If no node can take the message any
more, it is sent as the next message.

The round runs the flow of the session's last round, or --flow. SESSION may be the
beginning of an id.`,
		Example: `  weir send 01kafw 'Is berth 4 free?' --id order-17
  weir send 01kafw 'Cancel order 17.' --id mail-3 --no-wait --json
  weir send 01kafw 'Is berth 5 free?' --edit 0
  weir send 01kafw --regenerate last
  weir send 01kafw 'Only berths for yachts.' --steer
  weir send 01kafw --interrupt`,
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			// A flag with an empty value, as of a variable that is not set, is not a flag left out.
			o.edits, o.regenerates = c.Flags().Changed("edit"), c.Flags().Changed("regenerate")
			text, err := o.read(args)
			if err != nil {
				return err
			}
			return p.send(c.Context(), text, o, d)
		},
	}
	f := c.Flags()
	f.StringVar(&o.id, "id", "", "the `ID` of the message, chosen by the sender")
	f.StringVar(&o.edit, "edit", "", "send TEXT in the place of message `N`, in a fork")
	f.StringVar(&o.regenerate, "regenerate", "", "send message `N`, or last, again in a fork")
	f.BoolVar(&o.noWait, "no-wait", false, "store the message and do not wait for the reply")
	f.BoolVar(&o.steer, "steer", false, "send TEXT to the round that runs")
	f.BoolVar(&o.interrupt, "interrupt", false, "as --steer, and end the model's answer where it is")
	f.StringVar(&o.node, "node", "", "with --steer: the `PATH` of the node")
	f.StringVar(&o.flow, "flow", "", "run this flow `FILE` in the round")
	f.StringVar(&o.user, "user", "", "send as this `USER`, who must be the session's")
	f.StringVar(&o.model, "model", "", "use `PROVIDER/MODEL` instead of the flow's model")
	f.StringVar(&o.busy, "busy", "", "what to do while another round runs: queue, reject or fork")
	f.StringArrayVarP(&o.inputs, "input", "i", nil, "another input, `NAME=VALUE`; may be repeated")
	f.StringVar(&o.file, "inputs", "", "other inputs from a YAML or JSON `FILE`; -i overrides them")
	f.BoolVar(&p.json, "json", false, "print one JSON object")
	_ = c.RegisterFlagCompletionFunc("busy", cobra.FixedCompletions(
		[]cobra.Completion{flow.BusyQueue, flow.BusyReject, flow.BusyFork}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p *cli) send(ctx context.Context, text string, o *sendOptions, d *runDriver) error {
	if err := runner.CheckName("message id", o.id); err != nil {
		return err
	}
	if o.flow == "" && (o.file != "" || len(o.inputs) > 0) {
		return usagef("-i and --inputs need --flow, which declares the inputs")
	}
	if err := o.check(o.flow); err != nil {
		return err
	}
	c := &chat{p: p}
	if err := c.open(ctx, o.flow, &o.chatOptions, d); err != nil {
		return err
	}
	defer c.app.close() //nolint:errcheck // what was sent is durable
	c.send.ID, c.send.Origin = o.id, "cli"
	if o.noWait {
		return c.enqueue(ctx, text)
	}
	c.lines, c.view = &plainLines{p}, &replyView{p: p}
	err := c.sendOnce(ctx, text, o)
	if closed := c.app.close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return c.exitError()
}

// read checks the arguments and the flags that exclude each other. The text is "" where a
// message is sent again.
func (o *sendOptions) read(args []string) (text string, err error) {
	forks := o.edits || o.regenerates
	switch {
	case o.edits && o.regenerates:
		return "", usagef("--edit and --regenerate exclude each other")
	case forks && o.noWait:
		return "", usagef("--no-wait cannot be combined with --edit or --regenerate")
	case forks && o.id != "":
		return "", usagef("--id cannot be combined with --edit or --regenerate: each makes a new fork")
	case o.steers() && (forks || o.noWait):
		return "", usagef("--steer and --interrupt cannot be combined with --edit, --regenerate or --no-wait")
	case o.node != "" && !o.steers():
		return "", usagef("--node needs --steer")
	case o.interrupt && len(args) == 1:
		o.session = args[0]
		return "", nil
	case o.regenerates && len(args) != 1:
		return "", usagef("--regenerate: expected SESSION, and no TEXT")
	case o.regenerates && o.regenerate == "":
		return "", usagef("--regenerate: expected the number of a message, from 0, or %s", lastMessage)
	case !o.regenerates && len(args) != 2:
		return "", usagef("expected SESSION TEXT; see `weir send --help`")
	}
	o.session = args[0]
	if !o.regenerates {
		text = args[1]
	}
	return text, nil
}

// steers reports whether the message is for the round that runs.
func (o *sendOptions) steers() bool { return o.steer || o.interrupt }

// sendOnce sends the message, to a fork if it takes the place of another, and shows the reply.
func (c *chat) sendOnce(ctx context.Context, text string, o *sendOptions) error {
	switch {
	case o.regenerates:
		return c.regenerateCommand(ctx, o.regenerate)
	case o.edits:
		return c.editCommand(ctx, o.edit+" "+text)
	case o.steers():
		return c.steer(ctx, runner.Steering{ID: o.id, Path: o.node, Text: text, Interrupt: o.interrupt})
	}
	reply, err := c.session.Send(ctx, text, c.send)
	if err != nil {
		return err
	}
	return c.showReply(ctx, reply)
}

// receiptReport is a message that was stored, as `weir send --no-wait --json` prints it.
type receiptReport struct {
	Session string `json:"session"`
	Message string `json:"message"`
	Status  string `json:"status"` // "queued", or "taken" by Run
	Run     string `json:"run"`
}

// enqueue stores a message and prints where it is.
func (c *chat) enqueue(ctx context.Context, text string) error {
	kept, err := c.session.Enqueue(ctx, text, c.send)
	if err != nil {
		return err
	}
	r := receiptReport{Session: kept.Session, Message: kept.Message, Status: "queued", Run: kept.Run}
	if kept.Run != "" {
		r.Status = "taken"
	}
	switch {
	case c.p.json:
		writeJSON(c.p.out, r)
	case kept.Run != "":
		fmt.Fprintln(c.p.out, app.Printable(kept.Message))
		c.p.notef("run %s has taken the message: %s", kept.Run, c.p.commandLine("show", kept.Run))
	default:
		fmt.Fprintln(c.p.out, app.Printable(kept.Message))
		c.p.notef("queued in session %s; continue with: %s", kept.Session, c.p.commandLine("chat", "--session", kept.Session))
	}
	return nil
}

func (p *cli) activateSessionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "activate SESSION",
		Short: "Make a session the active one of its user and flow",
		Long: `Make a session the active one of its user and flow: messages that name no session and no
thread join it.`,
		Example:           `  weir sessions activate 01kafw`,
		Args:              exactArgs("SESSION"),
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withSession(c.Context(), args[0], func(ctx context.Context, a *application, s *store.Session) error {
				x, err := a.Session(ctx, nil, weir.SessionOptions{ID: s.ID})
				if err != nil {
					return err
				}
				return x.Activate(ctx)
			})
		},
	}
}
