package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/store"
)

func (p *cli) deleteSessionCommand() *cobra.Command {
	o := &deleteOptions{}
	c := &cobra.Command{
		Use:   "delete SESSION... | --user USER",
		Short: "Delete sessions, or everything stored about a user, permanently",
		Long: `Delete sessions permanently, with their messages and rounds. With --user, delete
everything stored about a user, including memory, learned code, state with "scope: user" and
runs without a session. In a file, the space is overwritten; a line says what remains on a
server.

Sessions and runs that were forked from a deleted one share its past and are deleted too;
the command lists them first. It asks for confirmation, unless --yes is given, and prints
what was deleted. --dry-run only prints what would be deleted.

Then the database is rewritten, which takes time in proportion to its size. With
--defer-compaction that is left to "weir sessions compact" or the next deletion; until
then, unused space of the files may contain parts of what was deleted.`,
		Example: `  weir sessions delete 01kafw --dry-run
  weir sessions delete --user ada --yes`,
		ValidArgsFunction: p.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 0) == (o.user == "") {
				return usagef("expected SESSION..., or --user USER")
			}
			return p.deleteSessions(c.Context(), args, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.user, "user", "", "everything stored about this `USER`")
	_ = c.RegisterFlagCompletionFunc("user", p.completeSessionField(userOf))
	f.BoolVarP(&o.assumeYes, "yes", "y", false, "do not ask for confirmation")
	f.BoolVar(&o.dryRun, "dry-run", false, "only print what would be deleted")
	f.BoolVar(&o.force, "force", false, "also delete what a live process works on")
	deferCompactionFlag(f, o)
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	return c
}

type deleteOptions struct {
	user                           string
	assumeYes, force, dryRun, json bool
	deferCompaction                bool
}

// erased is what was deleted, as --json prints it.
type erased struct {
	Sessions int           `json:"sessions"`
	Runs     int           `json:"runs"`
	Messages int           `json:"messages"`
	Memories int           `json:"memories"`          // items of long-term memory
	Values   int           `json:"values"`            // of state keys with the scope user
	Learned  int           `json:"learned"`           // programs that models wrote
	Traces   bool          `json:"traces"`            // parts may remain in unused space until "weir sessions compact"
	Copies   []string      `json:"copies"`            // of the database, which were not touched
	Forks    []deletedTree `json:"forks"`             // what shares the past of what was named, and goes with it
	Kept     []keptSession `json:"kept"`              // what pruning has left, and why
	Remains  string        `json:"remains,omitempty"` // where parts remain that the store cannot reach
}

// deletedTree is a session, or a run with its children; one of them is set.
type deletedTree struct {
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
}

func (f deletedTree) String() string {
	if f.Session != "" {
		return "session " + f.Session
	}
	return "run " + f.Run
}

// keptSession is a session that pruning has left.
type keptSession struct {
	Session string        `json:"session"`
	Forks   []deletedTree `json:"forks"` // that stay and share its past
	Busy    bool          `json:"busy"`  // a live process works on it, or on a fork of it
}

func newErased() erased {
	return erased{Copies: []string{}, Forks: []deletedTree{}, Kept: []keptSession{}}
}

func deletedTrees(list []store.Tree) []deletedTree {
	out := make([]deletedTree, 0, len(list))
	for _, t := range list {
		out = append(out, deletedTree(t))
	}
	return out
}

func (e *erased) add(x store.DeleteResult) {
	e.Sessions += x.Sessions
	e.Runs += x.Runs
	e.Messages += x.Messages
	e.Memories += x.Memories
	e.Values += x.UserValues
	e.Learned += x.Learned
	e.Traces = e.Traces || x.Traces
	if x.Copies != nil {
		e.Copies = x.Copies
	}
	if x.Remains != "" {
		e.Remains = x.Remains
	}
	e.Forks = append(e.Forks, deletedTrees(x.Forks)...)
	for _, k := range x.Kept {
		e.Kept = append(e.Kept, keptSession{k.Session, deletedTrees(k.Forks), k.Busy})
	}
}

func (p *cli) deleteSessions(ctx context.Context, prefixes []string, o *deleteOptions) error {
	a, err := p.openWithRunner(ctx)
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // what it did is durable
	var ids []string
	what := "all that is kept of user " + o.user
	for _, prefix := range prefixes {
		id, err := a.FindSession(ctx, prefix)
		if err != nil {
			return unknownSession(err)
		}
		ids = append(ids, id)
		what = "session " + id
	}
	if len(ids) > 1 {
		what = count(len(ids), "session")
	}
	doomed, err := a.deleteSessions(ctx, ids, o, true)
	if err != nil {
		return err
	}
	if !o.json {
		if err := p.printUserStateFate(ctx, a, ids, o.user, doomed.Values); err != nil {
			return err
		}
	}
	if o.dryRun {
		p.printErased(doomed, o.json, "would delete")
		return nil
	}
	if !o.json && len(doomed.Forks) > 0 {
		p.notef("%s, and goes with it: %s", map[bool]string{true: "this shares its past", false: "these share its past"}[len(doomed.Forks) == 1], treeNames(doomed.Forks))
	}
	if ok, err := p.confirmDelete(ctx, fmt.Sprintf("Delete %s for good?", what), o); !ok || err != nil {
		return err
	}
	sum, err := a.deleteSessions(ctx, ids, o, false)
	if err != nil {
		return err
	}
	p.printErased(sum, o.json, "deleted")
	return nil
}

// printUserStateFate says, before a deletion, which values of state keys with the scope user
// go with a user, or stay when sessions are deleted.
func (p *cli) printUserStateFate(ctx context.Context, a *application, ids []string, user string, doomed int) error {
	if user != "" {
		if doomed > 0 {
			p.notef("%s that flows keep for user %s (scope: user) will be deleted", count(doomed, "value"), app.Printable(user))
		}
		return nil
	}
	reported := map[string]bool{}
	for _, id := range ids {
		s, err := a.Store.Session(ctx, id)
		if err != nil {
			return err
		}
		kept, err := a.Store.UserState(ctx, s.User, s.Flow)
		if err != nil {
			return err
		}
		if len(kept) > 0 && !reported[s.User+"\n"+s.Flow] {
			reported[s.User+"\n"+s.Flow] = true
			p.notef("%s that flow %s keeps for user %s (scope: user) will stay; delete with: %s", count(len(kept), "value"), app.Printable(s.Flow), app.Printable(s.User),
				p.commandLine("users", "state", "reset", s.User, "--all", "--flow-name", s.Flow))
		}
	}
	return nil
}

// deleteSessions deletes sessions or what is kept of a user, or finds out what that comes to.
func (a *application) deleteSessions(ctx context.Context, ids []string, o *deleteOptions, dry bool) (erased, error) {
	sum, how := newErased(), store.DeleteOptions{Force: o.force, DryRun: dry, DeferCompaction: true}
	if o.user != "" {
		how.DeferCompaction = o.deferCompaction
		x, err := a.DeleteUser(ctx, o.user, how)
		sum.add(x)
		return sum, err
	}
	below := make(map[string]bool) // goes with another
	for _, id := range ids {
		x, err := a.DeleteSession(ctx, id, store.DeleteOptions{Force: o.force, DryRun: true})
		if err != nil {
			return sum, err
		}
		for _, f := range x.Forks {
			below[f.Session] = true
		}
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if below[id] {
			continue
		}
		x, err := a.DeleteSession(ctx, id, how)
		if err != nil {
			return sum, errors.Join(err, a.compactAfter(ctx, &sum, o, dry))
		}
		sum.add(x)
	}
	if err := a.compactAfter(ctx, &sum, o, dry); err != nil {
		return sum, err
	}
	sum.Forks = slices.DeleteFunc(sum.Forks, func(f deletedTree) bool { return slices.Contains(ids, f.Session) })
	return sum, nil
}

// confirmDelete asks for confirmation of a deletion; without a terminal, --yes is needed.
func (p *cli) confirmDelete(ctx context.Context, question string, o *deleteOptions) (bool, error) {
	if o.assumeYes {
		return true, nil
	}
	if o.json || !isTerminal(p.in) || !isTerminal(p.err) {
		return false, usagef("%s there is no terminal to ask in: give --yes", question)
	}
	p.discardTyped()
	fmt.Fprintf(p.err, "%s %s ", p.style().bold.Render(question), p.style().dim.Render("[y/N]"))
	line, err := p.readLine(ctx)
	if err != nil || !isYes(line) {
		p.notef("nothing was done")
		return false, nil //nolint:nilerr // no answer is no confirmation
	}
	return true, nil
}

func (p *cli) printErased(e erased, asJSON bool, verb string) {
	if asJSON {
		writeJSON(p.out, e)
		return
	}
	line := fmt.Sprintf("%s %s, %s, %s", verb, count(e.Sessions, "session"), count(e.Runs, "run"), count(e.Messages, "message"))
	if e.Memories > 0 {
		line += ", " + count(e.Memories, "remembered item")
	}
	if e.Learned > 0 {
		line += ", " + count(e.Learned, "learned program")
	}
	if e.Values > 0 {
		line += ", " + count(e.Values, "value") + " of the user"
	}
	fmt.Fprintln(p.out, line)
	if len(e.Forks) > 0 {
		fmt.Fprintf(p.out, "  among them, since they share a past with what was named: %s\n", treeNames(e.Forks))
	}
	for _, k := range e.Kept {
		fmt.Fprintf(p.out, "  kept %s: %s\n", k.Session, k.reason())
	}
	if e.Traces {
		p.notef("  unused space of the database may contain parts of it until: %s", p.commandLine("sessions", "compact"))
	}
	if e.Remains != "" {
		p.notef("  %s", e.Remains)
	}
	for _, path := range e.Copies {
		p.notef("  it may still be in %s, which an upgrade left and you may delete", path)
	}
}

// reason says why pruning has left it.
func (k *keptSession) reason() string {
	var parts []string
	if len(k.Forks) > 0 {
		parts = append(parts, "its past is shared by "+treeNames(k.Forks)+", which "+map[bool]string{true: "stays", false: "stay"}[len(k.Forks) == 1])
	}
	if k.Busy {
		parts = append(parts, "a process works on it, or on a fork of it")
	}
	return strings.Join(parts, "; ")
}

// treeNames returns a list of what is deleted together, the first few by name.
func treeNames(list []deletedTree) string {
	const most = 5
	var names []string
	for _, f := range list[:min(len(list), most)] {
		names = append(names, f.String())
	}
	if more := len(list) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func (p *cli) pruneSessionsCommand() *cobra.Command {
	var older string
	var expired bool
	prune, o := store.PruneOptions{}, &deleteOptions{}
	c := &cobra.Command{
		Use:   "prune --older-than TIME | --keep N | --expired",
		Short: "Delete old or expired sessions",
		Long: `Delete sessions permanently that had no message for some time, that exceed a number, or
whose ttl (session: {ttl: ...} in the flow) has passed. Expired sessions are always
included. The command asks for confirmation, unless --yes is given. --dry-run only prints
what would be deleted.

A session is kept, and listed, while something that stays was forked from it and shares
its past, or while a process works on it.`,
		Example: `  weir sessions prune --expired
  weir sessions prune --older-than 30d --flow support --dry-run`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("keep") && prune.Keep < 1 {
				return usagef("--keep %d: expected how many sessions of each user and flow to keep, at least 1", prune.Keep)
			}
			if older == "" && !expired && prune.Keep == 0 {
				return usagef("expected --older-than TIME, --keep N or --expired")
			}
			if older != "" {
				d, err := flow.ParseLifetime(older)
				if err != nil || d <= 0 {
					return usagef("--older-than %s: expected a time such as 30d or 12h", older)
				}
				prune.OlderThan = d
			}
			a, err := p.openWithRunner(c.Context())
			if err != nil {
				return err
			}
			defer a.close() //nolint:errcheck // what it did is durable
			return p.prune(c.Context(), a, prune, o)
		},
	}
	f := c.Flags()
	f.StringVar(&older, "older-than", "", "without a message for this `TIME`: 30d, 12h")
	f.IntVar(&prune.Keep, "keep", 0, "all except the newest `N` of each user and flow")
	f.BoolVar(&expired, "expired", false, "whose ttl has passed; these are deleted with the other flags too")
	f.StringVar(&prune.User, "user", "", "only sessions of this `USER`")
	f.StringVar(&prune.Flow, "flow", "", "only sessions with the flow of this `NAME`")
	_ = c.RegisterFlagCompletionFunc("user", p.completeSessionField(userOf))
	_ = c.RegisterFlagCompletionFunc("flow", p.completeSessionField(flowNameOf))
	f.BoolVarP(&o.assumeYes, "yes", "y", false, "do not ask for confirmation")
	f.BoolVar(&o.dryRun, "dry-run", false, "only print what would be deleted")
	deferCompactionFlag(f, o)
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	return c
}

func deferCompactionFlag(f *pflag.FlagSet, o *deleteOptions) {
	f.BoolVar(&o.deferCompaction, "defer-compaction", false, "leave rewriting the database to \"weir sessions compact\"")
}

// prune deletes sessions after asking, or says what would be deleted.
func (p *cli) prune(ctx context.Context, a *application, which store.PruneOptions, o *deleteOptions) error {
	which.DryRun = true
	x, err := a.PruneSessions(ctx, which)
	if err != nil {
		return err
	}
	doomed := newErased()
	doomed.add(x)
	switch {
	case o.dryRun:
		p.printErased(doomed, o.json, "would delete")
		return nil
	case doomed.Sessions == 0:
		p.printErased(doomed, o.json, "deleted")
		return nil
	}
	question := fmt.Sprintf("Delete %s with %s for good?", count(doomed.Sessions, "session"), count(doomed.Runs, "run"))
	if ok, err := p.confirmDelete(ctx, question, o); !ok || err != nil {
		return err
	}
	which.DryRun, which.DeferCompaction = false, o.deferCompaction
	if x, err = a.PruneSessions(ctx, which); err != nil {
		return err
	}
	sum := newErased()
	sum.add(x)
	p.printErased(sum, o.json, "deleted")
	return nil
}
