package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/node/codegen/learned"
)

func (p *cli) deleteCodeCommand() *cobra.Command {
	o, how, all := &codeFilter{}, &deleteOptions{}, false
	c := &cobra.Command{
		Use:   "delete CODE... | --user USER | --flow NAME | --state STATE | --all",
		Short: "Delete learned programs",
		Long: `Delete learned programs: the named ones, or all that match the flags. In the next run of
the task, models write the code again, and it may be learned again; "weir code disable"
prevents that. The command asks for confirmation, unless --yes is given. --dry-run only
lists what would be deleted.

The records of the runs that wrote and used a program do not change.`,
		Example: `  weir code delete 3f2a
  weir code delete --user ada --flow invoices --dry-run`,
		ValidArgsFunction: p.completeCode,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			filtered := o.Filter != (learned.Filter{})
			switch {
			case all && (filtered || len(args) > 0):
				return usagef("--all takes everything: leave out the rest")
			case len(args) > 0 && filtered:
				return usagef("expected CODE... or flags that say which, and not both")
			case len(args) == 0 && !filtered && !all:
				return usagef("expected CODE..., flags such as --user USER that say which, or --all")
			}
			how.json = o.json
			return p.deleteCode(c.Context(), args, o.Filter, how)
		},
	}
	p.codeFlags(c, o)
	f := c.Flags()
	f.BoolVar(&all, "all", false, "all learned programs of all users")
	f.BoolVarP(&how.assumeYes, "yes", "y", false, "do not ask")
	f.BoolVar(&how.dryRun, "dry-run", false, "delete nothing, and list what would be")
	return c
}

func (p *cli) deleteCode(ctx context.Context, prefixes []string, f learned.Filter, how *deleteOptions) error {
	a, err := p.openReadOnly(ctx)
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // what it did is durable
	doomed, err := a.findAllLearned(ctx, prefixes)
	if err == nil && len(prefixes) == 0 {
		doomed, err = a.LearnedCode().List(ctx, f)
	}
	if err != nil {
		return err
	}
	if how.dryRun || len(doomed) == 0 {
		p.printLearned(doomed, how.json)
		return nil
	}
	if ok, err := p.confirmDelete(ctx, fmt.Sprintf("Delete %s for good?", count(len(doomed), "learned program")), how); !ok || err != nil {
		return err
	}
	ids := make([]string, len(doomed))
	for i := range doomed {
		ids[i] = doomed[i].ID
	}
	n, err := a.LearnedCode().Delete(ctx, ids...)
	if err != nil {
		return err
	}
	if how.json {
		writeJSON(p.out, map[string]any{"deleted": n})
		return nil
	}
	fmt.Fprintf(p.out, "deleted %s\n", count(n, "learned program"))
	return nil
}
