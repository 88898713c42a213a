package sandbox

import (
	"fmt"
	"os"
)

// childArgument is the first argument of a program that was started again as a child of one
// of its executors; the second names the role.
const childArgument = "weir-sandbox-child"

// ChildRole is a function of a program as a child of one of its executors.
type ChildRole struct {
	Name string
	// Main performs the role; args are those passed to SelfCommand.Command. Its result is
	// the exit code.
	Main func(args []string) int
}

// SelfCommand starts the program again. The zero value cannot.
type SelfCommand struct {
	path string
}

// RunChildRole must be called first in main of a program that offers executors with a child
// process. If the program was started as such a child, RunChildRole performs the role and
// does not return.
func RunChildRole(roles ...ChildRole) SelfCommand {
	if len(os.Args) > 2 && os.Args[1] == childArgument {
		for _, r := range roles {
			if r.Name == os.Args[2] {
				os.Exit(r.Main(os.Args[3:])) //nolint:forbidigo // it stands in for main
			}
		}
		fmt.Fprintf(os.Stderr, "this program has no role %q for running code\n", os.Args[2])
		os.Exit(2) //nolint:forbidigo // it stands in for main
	}
	path, err := os.Executable()
	if err != nil {
		return SelfCommand{}
	}
	return SelfCommand{path: path}
}

// Command returns the command line that starts the program in a role, nil if RunChildRole
// was not called.
func (s SelfCommand) Command(role string, args ...string) []string {
	if s.path == "" {
		return nil
	}
	return append([]string{s.path, childArgument, role}, args...)
}
