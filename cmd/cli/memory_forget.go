package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
)

func (p *cli) forgetMemoryCommand() *cobra.Command {
	o, how, all := &memoryFilter{}, &deleteOptions{}, false
	c := &cobra.Command{
		Use:   "forget ITEM... | --user USER | --namespace NAMESPACE | ...",
		Short: "Delete items of memory permanently",
		Long: `Delete items permanently, with their earlier versions: the named items, or all items that
match the flags. The space is overwritten. The command asks for confirmation, unless --yes
is given, and prints the number of deleted items. --dry-run only lists them.

Conversations in which an item was said or read stay. "weir sessions delete" deletes
those, and with --user the memory of the user too.`,
		Example: `  weir memory forget m4k2
  weir memory forget --user ada --kind episode --dry-run
  weir memory forget --from 01kafw --yes`,
		ValidArgsFunction: p.completeMemories,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			filtered := o.Filter != (memory.Filter{})
			switch {
			case all && (filtered || len(args) > 0):
				return usagef("--all deletes all items: leave out other flags and items")
			case len(args) > 0 && filtered:
				return usagef("expected either ITEM... or flags that select items")
			case len(args) == 0 && !filtered && !all:
				return usagef("expected ITEM..., flags that select items such as --user USER, or --all")
			}
			how.json = o.json
			return p.forgetMemories(c.Context(), args, o, how)
		},
	}
	p.filterFlags(c, o)
	f := c.Flags()
	f.BoolVar(&all, "all", false, "all items of all users")
	f.BoolVarP(&how.assumeYes, "yes", "y", false, "do not ask for confirmation")
	f.BoolVar(&how.dryRun, "dry-run", false, "only list what would be deleted")
	return c
}

func (p *cli) forgetMemories(ctx context.Context, names []string, o *memoryFilter, how *deleteOptions) error {
	if err := p.mustExist(); err != nil {
		return err
	}
	return p.withMemory(ctx, o.json, func(ctx context.Context, m store.MemoryStore) error {
		doomed, err := memoriesToForget(ctx, m, names, o.Filter)
		if err != nil {
			return err
		}
		if how.dryRun || len(doomed) == 0 {
			p.printMemories(doomed, o.json)
			return nil
		}
		if ok, err := p.confirmDelete(ctx, fmt.Sprintf("Forget %s for good?", describeItems(doomed, names)), how); !ok || err != nil {
			return err
		}
		gone, err := forgetAll(ctx, m, doomed, o.Filter, len(names) > 0)
		if err != nil {
			return err
		}
		if o.json {
			out := map[string]any{"memories": gone.Memories, "copies": append([]string{}, gone.Copies...)}
			if gone.Remains != "" {
				out["remains"] = gone.Remains
			}
			writeJSON(p.out, out)
			return nil
		}
		fmt.Fprintf(p.out, "forgot %s\n", count(gone.Memories, "item"))
		if gone.Remains != "" {
			p.notef("  %s", gone.Remains)
		}
		for _, path := range gone.Copies {
			p.notef("  it may still be in %s, which an upgrade left and you may delete", path)
		}
		return nil
	})
}

// describeItems describes items that are to be forgotten, of which some may be named.
func describeItems(doomed []memory.Item, names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("%s (%s)", doomed[0].ID, shorten(doomed[0].Text, 60))
	}
	what, owners := count(len(doomed), "remembered item"), ownersOf(doomed)
	if len(owners) == 1 {
		return what + " of " + owners[0]
	}
	return what + fmt.Sprintf(" of %d users and sessions", len(owners))
}

// forgetAll forgets items that were named, or what a filter takes. Only the last of
// those that were named has the file rewritten.
func forgetAll(ctx context.Context, m store.MemoryStore, doomed []memory.Item, f memory.Filter, named bool) (store.DeleteResult, error) {
	if !named {
		return m.ForgetMemories(ctx, f)
	}
	n, last := 0, len(doomed)-1
	for i := range doomed[:last] {
		was, err := m.Forget(ctx, doomed[i].Scope, doomed[i].ID, "")
		if err != nil {
			return store.DeleteResult{}, err
		}
		if was {
			n++
		}
	}
	gone, err := m.ForgetMemories(ctx, memory.Filter{ID: doomed[last].ID})
	gone.Memories += n
	return gone, err
}

// memoriesToForget lists what is to be forgotten.
func memoriesToForget(ctx context.Context, m store.MemoryStore, names []string, f memory.Filter) (list []memory.Item, err error) {
	if len(names) == 0 {
		return m.Memories(ctx, f)
	}
	for _, name := range names {
		i, err := findMemory(ctx, m, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(x memory.Item) bool { return x.ID == i.ID }) {
			list = append(list, *i)
		}
	}
	return list, nil
}

func ownersOf(list []memory.Item) (names []string) {
	for i := range list {
		who := scopeText(list[i].Scope)
		if !slices.Contains(names, who) {
			names = append(names, who)
		}
	}
	return names
}

// findMemory returns the one item whose id begins with prefix.
func findMemory(ctx context.Context, m store.MemoryStore, prefix string) (*memory.Item, error) {
	list, err := m.Memories(ctx, memory.Filter{Prefix: prefix, Limit: 100})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].ID == prefix || len(list) == 1 && prefix != "" {
			return &list[i], nil
		}
	}
	if len(list) == 0 || prefix == "" {
		return nil, &notFoundError{fmt.Errorf("item %s: %w", prefix, store.ErrNotFound), "memory list", "items"}
	}
	return nil, usagef("%d items begin with %q, as %s and %s; give more of it", len(list), prefix, list[0].ID, list[1].ID)
}
