package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (p *cli) compactCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "compact",
		Short: "Remove traces of deleted data from the database",
		Long: `Rewrite the database, so that it has no traces of what "weir sessions delete" or "prune"
deleted with --defer-compaction, and gives the space back. Without traces, the command does
nothing. It needs as much free space as the database has, and waits for readers.`,
		Example: `  weir sessions delete 01kafw --yes --defer-compaction
  weir sessions compact`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := p.openReadOnly(c.Context())
			if err != nil {
				return err
			}
			defer a.close() //nolint:errcheck // what it did is durable
			compacted, err := a.Compact(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				writeJSON(p.out, map[string]bool{"compacted": compacted})
				return nil
			}
			fmt.Fprintln(p.out, map[bool]string{true: "compacted the database", false: "nothing to compact: the database has no traces of deleted data"}[compacted])
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// compactAfter compacts the database once after several deletions, unless that is
// deferred.
func (a *application) compactAfter(ctx context.Context, sum *erased, o *deleteOptions, dry bool) error {
	if dry || o.deferCompaction {
		return nil
	}
	sum.Traces = false
	_, err := a.Compact(ctx)
	return err
}
