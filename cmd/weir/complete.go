package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// exactArgs takes these arguments and no others.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("expected %s; see `%s --help`", strings.Join(names[len(args):], " "), c.CommandPath())
		case len(args) > len(names):
			return usagef("did not expect %q; see `%s --help`", args[len(names)], c.CommandPath())
		}
		return nil
	}
}

// completeFlows completes the path of a flow file.
func (p *program) completeFlows(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

func (p *program) completeTargets(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (p *program) completeRuns(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (p *program) completeAnswer(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}
