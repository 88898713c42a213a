package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
)

func (p *cli) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			b := app.ThisBuild()
			if asJSON {
				writeJSON(p.out, b)
				return nil
			}
			fmt.Fprintf(p.out, "weir %s, %s, %s/%s\n", b.Version, b.Go, b.OS, b.Arch)
			if b.Commit != "" {
				fmt.Fprintf(p.out, "commit %s\n", b.Commit)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
