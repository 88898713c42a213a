package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-run/weir/flow"
)

// didYouMean names the candidate that was likely meant, in the form
// ` (did you mean "x"?)`; "" where none is near.
func didYouMean(typed string, candidates []string) string {
	best := flow.NearestName(typed, candidates)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// disableFileCompletion has the shell offer nothing, and not the files of the folder, for
// flags whose values are no files and that have no completion of their own.
func disableFileCompletion(c *cobra.Command) {
	for _, sub := range c.Commands() {
		disableFileCompletion(sub)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if word, _ := pflag.UnquoteUsage(f); word != "" && word != "FILE" && word != "PATH" {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions) // refused where it has its own
		}
	})
}
