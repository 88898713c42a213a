package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// suggestCommand says more about a command that is not there; other errors it
// returns as they are.
func suggestCommand(root *cobra.Command, err error) error {
	rest, ok := strings.CutPrefix(err.Error(), `unknown command "`)
	if !ok {
		return err
	}
	name, _, _ := strings.Cut(rest, `"`)
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return fmt.Errorf("there is no command %q%s; `weir --help` lists them", name, didYouMean(name, names))
}

// goError is the part of a flag's error that only a Go programmer can read.
var goError = regexp.MustCompile(`strconv\.[A-Za-z]+: parsing ".*": `)

// suggestFlag says what to do about a flag that is not there or has no such
// value.
func suggestFlag(c *cobra.Command, err error) error {
	msg := goError.ReplaceAllString(err.Error(), "")
	if name, ok := strings.CutPrefix(msg, "unknown flag: --"); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		msg += didYouMean("--"+name, names)
	}
	if strings.HasPrefix(msg, "unknown shorthand flag: ") && c.Name() == "answer" {
		msg += "; a value that begins with - goes behind --: `weir answer RUN INTERRUPT -- VALUE`"
	}
	return usagef("%s; see `%s --help`", msg, c.CommandPath())
}
