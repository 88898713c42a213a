package sandbox

import (
	"fmt"
	"os"
)

// childArgument is the first argument of a program that was started again as a
// child of one of its executors; the second names the role.
const childArgument = "weir-sandbox-child"

// ChildRole is what a program does as a child of one of its executors.
type ChildRole struct {
	Name string
	// Main does it; args are those that Self.Command was given. Its result is the
	// exit code.
	Main func(args []string) int
}

// SelfCommand is how a program starts itself again. The zero value cannot.
type SelfCommand struct {
	path string
}

// RunChildRole must be the first thing that main does in a program that offers
// executors which need a child process. Where the program was started as such a
// child it does that and does not return.
func RunChildRole(roles ...ChildRole) SelfCommand {
	if len(os.Args) > 2 && os.Args[1] == childArgument {
		for _, r := range roles {
			if r.Name == os.Args[2] {
				os.Exit(r.Main(os.Args[3:])) //nolint:forbidigo // it stands in for main
			}
		}
		fmt.Fprintf(os.Stderr, "this program has no part %q to run code in\n", os.Args[2])
		os.Exit(2) //nolint:forbidigo // it stands in for main
	}
	path, err := os.Executable()
	if err != nil {
		return SelfCommand{}
	}
	return SelfCommand{path: path}
}

// Command is the command line that starts the program in a role, nil where Begin
// was not called.
func (s SelfCommand) Command(role string, args ...string) []string {
	if s.path == "" {
		return nil
	}
	return append([]string{s.path, childArgument, role}, args...)
}
