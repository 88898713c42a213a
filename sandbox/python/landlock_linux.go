//go:build linux && (amd64 || arm64)

package python

import (
	"golang.org/x/sys/unix"
)

// Landlock's access rights beneath a path.
const (
	readFile   = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readFolder = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeAll   = readFolder | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlockABI returns the kernel's version of Landlock, 0 for none.
func landlockABI() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

// landlockRights returns all rights that the kernel's Landlock knows.
func landlockRights(abi int) *unix.LandlockRulesetAttr {
	files := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1)
	if abi >= 2 {
		files |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		files |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	a := &unix.LandlockRulesetAttr{Handled_access_fs: files}
	if abi >= 4 {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// size returns the size of the attributes that the kernel's Landlock knows.
func size(abi int) int {
	switch {
	case abi >= 6:
		return 24
	case abi >= 4:
		return 16
	default:
		return 8
	}
}

// landlock allows what the mounts allow and nothing else. It is a second barrier in case the first can be bypassed.
func (p *jobPlan) landlock(c *syscallList) {
	rules := landlockRights(p.installation.abi)
	ruleset := c.open("make Landlock rules", unix.SYS_LANDLOCK_CREATE_RULESET, addressOf(c, rules), size(p.installation.abi), 0)
	allow := func(path string, rights uint64) {
		fd := c.fd
		c.add("open "+path, unix.SYS_OPENAT, currentFolder, path, unix.O_PATH|unix.O_CLOEXEC, 0)
		c.add("allow "+path, unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, addressOf(c, &unix.LandlockPathBeneathAttr{
			Allowed_access: rights & rules.Handled_access_fs, Parent_fd: int32(fd),
		}), 0)
		c.add("close "+path, unix.SYS_CLOSE, fd)
	}
	for _, b := range p.binds() {
		rights := uint64(readFile)
		switch {
		case b.folder:
			rights = readFolder
		case b.execute:
			rights |= unix.LANDLOCK_ACCESS_FS_EXECUTE
		case b.device:
			rights |= unix.LANDLOCK_ACCESS_FS_WRITE_FILE
		}
		allow(b.to, rights)
	}
	allow("/proc", readFolder)
	allow("/files", readFolder)
	allow("/tmp", writeAll)
	c.add("enter Landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0)
	c.closeFrom(fdFirst)
}
