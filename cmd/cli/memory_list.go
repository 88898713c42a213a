package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
)

func (p *cli) listMemoryCommand() *cobra.Command {
	o := &memoryFilter{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List items, newest first",
		Args:  exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.checkLimit(); err != nil {
				return err
			}
			return p.withMemory(c.Context(), o.json, func(ctx context.Context, m store.MemoryStore) error {
				list, err := m.Memories(ctx, o.Filter)
				if err == nil {
					p.printMemories(list, o.json)
				}
				return err
			})
		},
	}
	p.filterFlags(c, o)
	c.Flags().IntVar(&o.Limit, "limit", 20, "list at most this many")
	return c
}

func (o *memoryFilter) checkLimit() error {
	if o.Limit < 1 || o.Limit > memory.MaxLimit {
		return usagef("--limit: expected 1 to %d", memory.MaxLimit)
	}
	return o.check()
}

func (p *cli) searchMemoryCommand() *cobra.Command {
	o := &memoryFilter{}
	c := &cobra.Command{
		Use:   "search WORDS",
		Short: "Find items with at least one of the words, best first",
		Long: `Find items with at least one of the words, as the tool memoryRead does; in each memory
the best first. A word also finds longer words that begin with it. Case and diacritics
are ignored.`,
		Example: `  weir memory search "boat berth" --user ada`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected WORDS")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.checkLimit(); err != nil {
				return err
			}
			words := strings.Join(args, " ")
			if len(memory.SearchTerms(words)) == 0 {
				return usagef("%q holds no word to look for", words)
			}
			return p.withMemory(c.Context(), o.json, func(ctx context.Context, m store.MemoryStore) error {
				list, err := searchMemories(ctx, m, words, o.Filter)
				if err == nil {
					p.printMemories(list, o.json)
				}
				return err
			})
		},
	}
	p.filterFlags(c, o)
	c.Flags().IntVar(&o.Limit, "limit", 20, "list at most this many")
	return c
}

// searchMemories looks in each memory that the filter takes. What is found in one
// cannot be compared with what is in another: the best of each come first, then the
// second.
func searchMemories(ctx context.Context, m store.MemoryStore, words string, f memory.Filter) ([]memory.Item, error) {
	owners, err := m.MemoryOwners(ctx, f)
	if err != nil {
		return nil, err
	}
	type found struct {
		place int
		item  memory.Item
	}
	var all []found
	for _, o := range owners {
		q := memory.Query{Scope: o.Scope, Text: words, Kind: f.Kind, Limit: f.Limit}
		if f.From != "" {
			q.Limit = memory.MaxLimit // of which some are left out
		}
		got, err := m.Recall(ctx, q)
		if err != nil {
			return nil, err
		}
		place := 0
		for i := range got.Items {
			if f.Matches(&got.Items[i]) {
				all = append(all, found{place, got.Items[i]})
				place++
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.place, b.place) })
	var out []memory.Item
	for _, x := range all[:min(len(all), f.Limit)] {
		out = append(out, x.item)
	}
	return out, nil
}

func (p *cli) printMemories(list []memory.Item, asJSON bool) {
	now, t := time.Now(), p.table("ITEM KIND NAMESPACE USER KEY WHEN TEXT", "NAMESPACE", "WHEN", "KEY", "USER")
	printList(p, list, asJSON, memoryRowOf, "no matching items", t, func(x *memory.Item) []string {
		return []string{
			x.ID, string(x.Kind), app.Printable(x.Namespace), scopeText(x.Scope), textOrDash(shorten(x.Key, 24)),
			ago(now.Sub(x.At)), shorten(x.Text, 200),
		}
	})
}

// scopeText names a scope within its namespace.
func scopeText(s memory.Scope) string {
	if s.User == "" {
		return "session " + app.Printable(s.Session)
	}
	return app.Printable(s.User)
}

// memoryReport is an item as `weir memory show --json` prints it.
type memoryReport struct {
	memoryRow
	Versions []versionRow `json:"versions"` // the oldest first
}

func (p *cli) showMemoryCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:               "show ITEM",
		Short:             "Show an item with its versions and origin",
		Args:              exactArgs("ITEM"),
		ValidArgsFunction: p.completeMemories,
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.mustExist(); err != nil {
				return err
			}
			return p.withMemory(c.Context(), asJSON, func(ctx context.Context, m store.MemoryStore) error {
				item, err := findMemory(ctx, m, args[0])
				if err != nil {
					return err
				}
				versions, err := m.MemoryVersions(ctx, item.ID)
				if err != nil {
					return err
				}
				p.printMemory(item, versions, asJSON)
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (p *cli) printMemory(i *memory.Item, versions []memory.Version, asJSON bool) {
	if asJSON {
		shown := memoryReport{memoryRow: memoryRowOf(i)}
		for n := range versions {
			shown.Versions = append(shown.Versions, versionRowOf(&versions[n]))
		}
		writeJSON(p.out, shown)
		return
	}
	st := p.styleFor(p.out)
	owner := "user " + scopeText(i.Scope)
	if i.User == "" {
		owner = "no user, in " + scopeText(i.Scope)
	}
	fmt.Fprintf(p.out, "%s  %s  %s  %s\n", st.bold.Render(i.ID), i.Kind, app.Printable(i.Namespace), owner)
	if i.Key != "" {
		fmt.Fprintln(p.out, "key  "+app.Printable(i.Key))
	}
	for n := range slices.Backward(versions) {
		v := &versions[n]
		line := fmt.Sprintf("version %d  written %s", v.Number, v.Written.Format("2006-01-02 15:04:05"))
		if i.Kind == memory.Episode {
			line += "  happened " + v.At.Format("2006-01-02 15:04:05")
		}
		fmt.Fprintf(p.out, "\n%s\n", st.dim.Render(line+sourceText(&v.Source)))
		fmt.Fprintln(p.out, app.Printable(v.Text))
		if len(v.Tags) > 0 {
			fmt.Fprintln(p.out, st.dim.Render("tags "+app.Printable(strings.Join(v.Tags, ", "))))
		}
	}
}

// sourceText says where a version came from.
func sourceText(x *memory.Source) string {
	var b strings.Builder
	for _, part := range []struct{ what, is string }{{"by", x.By}, {"in run", x.Run}, {"of", x.Flow}, {"in session", x.Session}} {
		if part.is != "" {
			b.WriteString("  " + part.what + " " + app.Printable(part.is))
		}
	}
	return b.String()
}
