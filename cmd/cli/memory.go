package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
)

// memoryRow is an item as --json prints it.
type memoryRow struct {
	ID        string      `json:"id"`
	Namespace string      `json:"namespace"`
	User      string      `json:"user"`
	Session   string      `json:"session"` // whose it is where there is no user
	Kind      memory.Kind `json:"kind"`
	Key       string      `json:"key"`
	Created   time.Time   `json:"created"`
	versionRow
}

// versionRow is a version of an item.
type versionRow struct {
	Version int       `json:"version"`
	Text    string    `json:"text"`
	Tags    []string  `json:"tags"`
	At      time.Time `json:"at"`
	Written time.Time `json:"written"`
	Source  sourceRow `json:"source"`
}

type sourceRow struct {
	Run     string `json:"run"`
	Flow    string `json:"flow"`
	Session string `json:"session"`
	Round   int    `json:"round"`
	By      string `json:"by"`
}

func memoryRowOf(i *memory.Item) memoryRow {
	return memoryRow{i.ID, i.Namespace, i.User, i.Session, i.Kind, i.Key, i.Created.UTC(), versionRowOf(&i.Version)}
}

func versionRowOf(v *memory.Version) versionRow {
	return versionRow{v.Number, v.Text, append([]string{}, v.Tags...), v.At.UTC(), v.Written.UTC(), sourceRow(v.Source)}
}

// memoryFilter are the flags that say which items.
type memoryFilter struct {
	memory.Filter
	kind string
	json bool
}

// check reads what was given as text.
func (o *memoryFilter) check() error {
	o.Kind = memory.Kind(o.kind)
	if o.Kind != "" && !slices.Contains(memory.Kinds(), o.Kind) {
		return usagef("--kind %s: expected fact, episode or procedure", o.kind)
	}
	return nil
}

func (p *cli) filterFlags(c *cobra.Command, o *memoryFilter) {
	f := c.Flags()
	f.StringVar(&o.User, "user", "", "only memory of this `USER`")
	f.StringVar(&o.Namespace, "namespace", "", "only memory in this `NAMESPACE`")
	f.StringVar(&o.Session, "session", "", "only memory of this `SESSION`, which has no user")
	f.StringVar(&o.kind, "kind", "", "only items of this `KIND`: fact, episode, procedure")
	f.StringVar(&o.From, "from", "", "only items that were learned in this `RUN` or session")
	f.BoolVar(&o.json, "json", false, "print JSON")
	_ = c.RegisterFlagCompletionFunc("user", p.completeOwners(func(o *memory.Owner) string { return o.User }))
	_ = c.RegisterFlagCompletionFunc("namespace", p.completeOwners(func(o *memory.Owner) string { return o.Namespace }))
	_ = c.RegisterFlagCompletionFunc("session", p.completeOwners(func(o *memory.Owner) string { return o.Session }))
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"fact", "episode", "procedure"}, noFiles))
}

func (p *cli) memoryCommand() *cobra.Command {
	o := &memoryFilter{}
	c := &cobra.Command{
		Use:   "memory",
		Short: "List, search, show and forget what agents remember of users",
		Long: `Memory holds facts, episodes and procedures that agents remember of users beyond
conversations. The tools identifyUser, memoryRead, memoryWrite and memoryForget read and
write it, if the configuration offers them (tools: {memory: true}).

Without a subcommand, the command lists the memories. An ITEM in the commands below may
be the beginning of its id.`,
		Example: `  weir memory list --user ada
  weir memory search "which berth" --user ada
  weir memory forget --user ada --namespace harbour`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return p.withMemory(c.Context(), o.json, func(ctx context.Context, m store.MemoryStore) error {
				owners, err := m.MemoryOwners(ctx, o.Filter)
				if err == nil {
					p.printOwners(owners, o.json)
				}
				return err
			})
		},
	}
	p.filterFlags(c, o)
	c.AddCommand(p.listMemoryCommand(), p.searchMemoryCommand(), p.showMemoryCommand(), p.forgetMemoryCommand())
	return c
}

// withMemory opens the memory; if there is no database nothing is remembered.
func (p *cli) withMemory(ctx context.Context, asJSON bool, do func(ctx context.Context, m store.MemoryStore) error) error {
	a, err := p.openReadOnly(ctx)
	if errors.Is(err, store.ErrNotFound) {
		if asJSON {
			writeJSON(p.out, []memoryRow{})
			return nil
		}
		p.notef("nothing is remembered: there is no database at %s", p.databaseName())
		return nil
	}
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // what it wrote is durable
	m, err := a.memoryStore()
	if err != nil {
		return err
	}
	return do(ctx, m)
}

func (a *application) memoryStore() (store.MemoryStore, error) {
	m := a.Store.Capabilities().Memory
	if m == nil {
		return nil, &store.Unsupported{Capability: "memory"}
	}
	return m, nil
}

// ownerRow is a scope as `weir memory --json` prints it.
type ownerRow struct {
	Namespace string    `json:"namespace"`
	User      string    `json:"user"`
	Session   string    `json:"session"`
	Items     int       `json:"items"`
	Newest    time.Time `json:"newest"`
}

func (p *cli) printOwners(list []memory.Owner, asJSON bool) {
	now, t := time.Now(), p.table("NAMESPACE USER ITEMS LAST")
	printList(p, list, asJSON, func(o *memory.Owner) ownerRow {
		return ownerRow{o.Namespace, o.User, o.Session, o.Items, o.Newest.UTC()}
	}, "nothing is remembered", t, func(o *memory.Owner) []string {
		return []string{app.Printable(o.Namespace), scopeText(o.Scope), fmt.Sprint(o.Items), ago(now.Sub(o.Newest))}
	})
}

// completeOwners offers what scopes have of something.
func (p *cli) completeOwners(of func(*memory.Owner) string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) (completions, cobra.ShellCompDirective) {
		var out completions
		err := p.withMemory(contextOf(c), true, func(ctx context.Context, m store.MemoryStore) error {
			owners, err := m.MemoryOwners(ctx, memory.Filter{})
			for i := range owners {
				if s := of(&owners[i]); s != "" && !slices.Contains(out, s) {
					out = append(out, s)
				}
			}
			return err
		})
		if err != nil {
			return nil, noFiles
		}
		return out, noFiles
	}
}

// completeMemories offers the newest items.
func (p *cli) completeMemories(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	if len(args) > 0 && c.Name() != "forget" {
		return nil, noFiles
	}
	a, err := p.openReadOnly(contextOf(c))
	if err != nil {
		return nil, noFiles
	}
	defer a.close() //nolint:errcheck // it only read
	m, err := a.memoryStore()
	if err != nil {
		return nil, noFiles
	}
	list, err := m.Memories(contextOf(c), memory.Filter{Limit: 100})
	if err != nil {
		return nil, noFiles
	}
	var out completions
	for i := range list {
		out = append(out, cobra.CompletionWithDesc(list[i].ID, shorten(list[i].Text, 40)))
	}
	return out, noFiles
}
