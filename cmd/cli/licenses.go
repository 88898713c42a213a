package cli

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/internal/licenses"
)

// licenseName is the licence of Weir itself.
const licenseName = "Apache License, Version 2.0"

func (p *cli) licensesCommand() *cobra.Command {
	var asList, asJSON bool
	c := &cobra.Command{
		Use:   "licenses",
		Short: "Print the licences of Weir and of the modules in it",
		Long: `Print the licence of Weir, and the licences and notices of all third-party modules in
this program and of the npm packages in its web page, in full. With --list, print one line per module.`,
		Example: `  weir licenses | less
  weir licenses --list`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			modules, err := licenses.Modules()
			if err != nil {
				return fmt.Errorf("read the list of modules in this program: %w", err)
			}
			var others []licenses.Module
			if b, ok := debug.ReadBuildInfo(); ok {
				others = licenses.WithoutText(modules, b.Deps)
			}
			switch {
			case asJSON:
				writeJSON(p.out, append(modules, others...))
			case asList:
				t := p.table("MODULE VERSION LICENCE")
				for _, m := range append(modules, others...) {
					t.row(m.Path, textOrDash(m.Version), cmp.Or(m.License, "see its source"))
				}
				t.print()
			default:
				fmt.Fprintf(p.out, "Weir is licensed under the %s: http://www.apache.org/licenses/LICENSE-2.0\n\n%s", licenseName, licenses.Text())
				for i, m := range others {
					if i == 0 {
						fmt.Fprintf(p.out, "\n%s\n\nThis program was built with further modules, which are under the licences in their sources:\n", strings.Repeat("=", 80))
					}
					fmt.Fprintf(p.out, "  %s %s\n", m.Path, m.Version)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asList, "list", false, "print one line per module")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array of modules")
	c.MarkFlagsMutuallyExclusive("list", "json")
	return c
}
