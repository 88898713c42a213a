//go:build linux && (amd64 || arm64)

package python

// system is what the machine has to isolate with; it does not change while the
// process runs.
type system struct {
	groups   *groups // nil where no cgroups can be made
	noGroups string  // why
	abi      int     // of Landlock, 0 for none
}

func newSystem() system {
	s := system{abi: landlockABI()}
	s.groups, s.noGroups = findGroups()
	return s
}
