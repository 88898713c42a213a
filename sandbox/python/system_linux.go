//go:build linux && (amd64 || arm64)

package python

import "golang.org/x/sys/unix"

// system describes the isolation features of the machine; it does not change while the process runs.
type system struct {
	groups   *cgroupRoot // nil if cgroups cannot be created
	noGroups string      // the reason for nil
	abi      int         // version of Landlock, 0 for none
	filter   *unix.SockFprog
}

func newSystem() (s system, err error) {
	s.abi = landlockABI()
	s.groups, s.noGroups = findGroups()
	s.filter, err = filter()
	return s, err
}
