//go:build linux && (amd64 || arm64)

package python

import "golang.org/x/sys/unix"

// system is what the machine has to isolate with; it does not change while the
// process runs.
type system struct {
	groups   *cgroupRoot // nil where no cgroups can be made
	noGroups string      // why
	abi      int         // of Landlock, 0 for none
	filter   *unix.SockFprog
}

func newSystem() (s system, err error) {
	s.abi = landlockABI()
	s.groups, s.noGroups = findGroups()
	s.filter, err = filter()
	return s, err
}
