//go:build linux && (amd64 || arm64)

package python

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The file descriptors of a job's process. The last two are closed when the interpreter starts.
const (
	fdReport = 3
	fdStatus = 4
	fdGo     = 5 // readable when the process may begin
	fdFirst  = 6 // the first free one
)

// sandboxUserID is the user and group id in the process's namespace.
const sandboxUserID = 65534

// jobPlan describes a job's process.
type jobPlan struct {
	installation *installation
	id           string // id of the sandbox; visible in the process's command line
	files        []inputFile
	memory       int64
	disk         int64
	tasks        int
	time         time.Duration
	root         string      // a folder outside the sandbox on which the new root is mounted
	cgroups      *cgroupRoot // where its cgroup is created; nil for no cgroup
	dropGroups   bool        // supplementary groups can be dropped
	stdFiles     [6]int      // the files that become descriptors 0 to 5
}

// inputFile is a file that the code may read.
type inputFile struct {
	from string
	name string
	// size of a file that has to be copied because the process's user may not read it; -1 for a file that is mounted.
	size int64
}

// sandboxPath returns the path in the sandbox.
func (g inputFile) sandboxPath() string { return "/files/" + g.name }

// calls returns the system calls that create the sandbox, in their required order.
func (p *jobPlan) calls() *syscallList {
	c := &syscallList{}
	for want, fd := range p.stdFiles {
		flags := 0
		if want >= fdStatus {
			flags = unix.O_CLOEXEC
		}
		c.add("take its files", unix.SYS_DUP3, fd, want, flags)
	}
	c.closeFrom(fdFirst)
	p.waitForParent(c)
	trees := p.openTrees(c)
	p.setUser(c)
	p.newRoot(c)
	p.mountTrees(c, trees)
	p.finishRoot(c)
	p.dropPrivileges(c)
	p.landlock(c)
	p.dropCapabilities(c)
	p.resetSignals(c)
	p.disableCoreDumps(c)
	c.add("load the seccomp filter", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, addressOf(c, p.installation.filter))
	p.rlimits(c)
	exe := p.installation.Executable
	c.add("start "+exe, unix.SYS_EXECVE, exe, []string{exe, "-I", "-S", "-B", "-X", "utf8", "-c", bootProgram, p.id}, []string{oneArena})
	return c
}

// waitForParent makes the process wait until the parent has done its part.
func (p *jobPlan) waitForParent(c *syscallList) {
	c.add("wait to begin", unix.SYS_READ, fdGo, string(make([]byte, 8)), 1).want = 1
}

// openTrees opens the mounted files and folders while the process still has the user that may do so.
func (p *jobPlan) openTrees(c *syscallList) (trees []uintptr) {
	cloneTree := unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE
	for _, b := range p.binds() {
		fd := c.open("show "+b.from, unix.SYS_OPEN_TREE, currentFolder, b.from, cloneTree)
		attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if b.device {
			attr.Attr_set = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
		}
		c.add("protect "+b.from, unix.SYS_MOUNT_SETATTR, fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, addressOf(c, attr), sizeofMountAttr)
		trees = append(trees, fd)
	}
	for _, g := range p.files {
		if g.size >= 0 {
			trees = append(trees, c.open("read the file "+g.name, unix.SYS_OPENAT, currentFolder, g.from, unix.O_RDONLY|unix.O_CLOEXEC, 0))
		}
	}
	return trees
}

// currentFolder is AT_FDCWD as a register value.
const currentFolder = ^uintptr(-unix.AT_FDCWD - 1)

// binds returns the mounts, folders before their contents.
func (p *jobPlan) binds() []bindMount {
	list := slices.Clone(p.installation.binds)
	for _, g := range p.files {
		if g.size < 0 {
			list = append(list, bindMount{from: g.from, to: g.sandboxPath()})
		}
	}
	slices.SortStableFunc(list, func(a, b bindMount) int { return strings.Compare(a.to, b.to) })
	return list
}

// setUser makes the process the user of its namespace.
func (p *jobPlan) setUser(c *syscallList) {
	c.add("become a group", unix.SYS_SETRESGID, sandboxUserID, sandboxUserID, sandboxUserID)
	if p.dropGroups {
		c.add("leave groups", unix.SYS_SETGROUPS, 0, nil)
	}
	c.add("become a user", unix.SYS_SETRESUID, sandboxUserID, sandboxUserID, sandboxUserID)
	c.add("end with the process that started it", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(unix.SIGKILL), 0, 0, 0)
	c.add("set the umask", unix.SYS_UMASK, 0o22)
}

// newRoot replaces the file system with an empty one.
func (p *jobPlan) newRoot(c *syscallList) {
	c.add("part from the outside's mounts", unix.SYS_MOUNT, nil, "/", nil, unix.MS_REC|unix.MS_PRIVATE, nil)
	size := int64(1 << 20)
	for _, g := range p.files {
		size += max(g.size, 0) + 1<<14
	}
	options := fmt.Sprintf("mode=0755,size=%d,nr_inodes=%d", size, 4096+len(p.files))
	c.add("mount a root", unix.SYS_MOUNT, "weir", p.root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
	// This is mounted while the outer one still exists for comparison: a container that hides parts of its own does
	// not allow a new one. Python works without it.
	c.add("make /proc", unix.SYS_MKDIRAT, currentFolder, p.root+"/proc", 0o555)
	flags := unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	c.add("mount /proc", unix.SYS_MOUNT, "proc", p.root+"/proc", "proc", flags, "hidepid=invisible,subset=pid").optional = true
	c.add("go to the new root", unix.SYS_CHDIR, p.root)
	c.add("change the root", unix.SYS_PIVOT_ROOT, ".", ".")
	c.add("leave the outside's files", unix.SYS_UMOUNT2, ".", unix.MNT_DETACH)
	c.add("go to the root", unix.SYS_CHDIR, "/")
}

// mountTrees creates the folders of the new root and mounts files and folders in them.
func (p *jobPlan) mountTrees(c *syscallList, trees []uintptr) {
	made := map[string]bool{"/": true, ".": true}
	for _, name := range []string{"/bin", "/lib", "/lib32", "/lib64"} {
		if target, err := os.Readlink(name); err == nil && !path.IsAbs(target) {
			c.add("link "+name, unix.SYS_SYMLINKAT, target, currentFolder, name)
			made[name] = true
		}
	}
	for _, dir := range []string{"/dev", "/tmp", "/files"} {
		makeFolder(c, made, dir)
	}
	options := fmt.Sprintf("mode=0700,size=%d,nr_inodes=%d", p.disk, 16384)
	c.add("mount /tmp", unix.SYS_MOUNT, "tmp", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options)
	list := p.binds()
	var shown []string
	for i, b := range list {
		if !slices.ContainsFunc(shown, func(dir string) bool { return strings.HasPrefix(b.to, dir+"/") }) {
			makeFolder(c, made, path.Dir(b.to))
			if b.folder {
				makeFolder(c, made, b.to)
			} else {
				c.add("make "+b.to, unix.SYS_MKNODAT, currentFolder, b.to, unix.S_IFREG|0o444, 0)
			}
		}
		if b.folder {
			shown = append(shown, b.to)
		}
		c.add("mount "+b.to, unix.SYS_MOVE_MOUNT, trees[i], "", currentFolder, b.to, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	p.copyFiles(c, trees[len(list):])
}

// copyFiles writes the files that cannot be mounted.
func (p *jobPlan) copyFiles(c *syscallList, sources []uintptr) {
	i := 0
	for _, g := range p.files {
		if g.size < 0 {
			continue
		}
		fd := c.open("make "+g.sandboxPath(), unix.SYS_OPENAT, currentFolder, g.sandboxPath(), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o444)
		c.add("copy the file "+g.name, unix.SYS_SENDFILE, fd, sources[i], nil, int(g.size)).want = int(g.size)
		i++
	}
}

// makeFolder appends the calls that create a folder and its parents.
func makeFolder(c *syscallList, made map[string]bool, dir string) {
	if made[dir] {
		return
	}
	made[dir] = true
	makeFolder(c, made, path.Dir(dir))
	c.add("make "+dir, unix.SYS_MKDIRAT, currentFolder, dir, 0o755)
}

// finishRoot adds the parts of the root that are not mounted from outside, and makes it read-only.
func (p *jobPlan) finishRoot(c *syscallList) {
	c.closeFrom(fdFirst)
	c.add("protect the root", unix.SYS_MOUNT_SETATTR, currentFolder, "/", 0, addressOf(c, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
	}), sizeofMountAttr)
	c.add("go to /tmp", unix.SYS_CHDIR, "/tmp")
	c.add("set a host name", unix.SYS_SETHOSTNAME, "sandbox", len("sandbox"))
	c.add("set a domain name", unix.SYS_SETDOMAINNAME, "", 0)
}

// sizeofMountAttr is the size of unix.MountAttr, in bytes.
const sizeofMountAttr = 32
