//go:build linux && (amd64 || arm64)

package python

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cgroupRoot is the directory in which cgroups for jobs can be created. A cgroup also limits the kernel memory of a
// process; it adds to the limits of the process itself, which always apply.
type cgroupRoot struct {
	version int
	folder  string // directory for new groups
}

// findGroups finds the directory in which this process may create cgroups that limit memory; nil if there is none,
// with the reason.
func findGroups() (*cgroupRoot, string) {
	mounts := groupMounts()
	own := ownGroups()
	if base, ok := mounts["memory"]; ok { // version 1
		g := &cgroupRoot{version: 1, folder: filepath.Join(base, own["memory"])}
		if why := writable(g.folder); why != "" {
			return nil, why
		}
		g.removeStale()
		return g, ""
	}
	base, ok := mounts[""]
	if !ok {
		return nil, "no cgroups are mounted"
	}
	var why string
	for _, dir := range []string{filepath.Join(base, own[""]), base} {
		dir = filepath.Join(dir, "weir-jobs")
		if why = prepare(dir); why == "" {
			g := &cgroupRoot{version: 2, folder: dir}
			g.removeStale()
			return g, ""
		}
	}
	return nil, why
}

// removeStale removes old groups of processes that were killed before they could remove them. New ones may belong to
// another process. The kernel keeps groups with processes in them.
func (g *cgroupRoot) removeStale() {
	left, _ := filepath.Glob(filepath.Join(g.folder, sandboxPrefix+"*"))
	for _, dir := range left {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(dir)
		}
	}
}

// prepare creates a group whose child groups limit memory.
func prepare(dir string) (why string) {
	if err := os.Mkdir(dir, 0o750); err != nil && !os.IsExist(err) {
		return err.Error()
	}
	err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory"), 0)
	if err != nil {
		_ = os.Remove(dir)
		return err.Error()
	}
	return ""
}

func writable(dir string) (why string) {
	try := filepath.Join(dir, "weir-try-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(try, 0o750); err != nil {
		return err.Error()
	}
	_ = os.Remove(try)
	return ""
}

// groupMounts returns the mounted hierarchies by controller; that of version 2 has the key "".
func groupMounts() map[string]string {
	found := map[string]string{}
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		left, right, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		switch kind[0] {
		case "cgroup":
			for name := range strings.SplitSeq(kind[2], ",") {
				if name == "memory" {
					found[name] = fields[4]
				}
			}
		case "cgroup2":
			found[""] = fields[4]
		}
	}
	return found
}

// ownGroups returns the groups of this process by controller.
func ownGroups() map[string]string {
	found := map[string]string{}
	b, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 {
			for name := range strings.SplitSeq(parts[1], ",") {
				found[name] = parts[2]
			}
		}
	}
	return found
}

// cgroup is the cgroup of a job.
type cgroup struct {
	version int
	dir     string
}

// add creates a group with a memory limit in bytes. If that fails, the result is nil: the limits of the process still
// apply.
func (g *cgroupRoot) add(id string, memory int64) *cgroup {
	if g == nil {
		return nil
	}
	one := &cgroup{version: g.version, dir: filepath.Join(g.folder, id)}
	if err := os.Mkdir(one.dir, 0o750); err != nil {
		return nil
	}
	file := map[int]string{1: "memory.limit_in_bytes", 2: "memory.max"}[g.version]
	if err := one.write(file, strconv.FormatInt(memory, 10)); err != nil {
		one.remove()
		return nil
	}
	if g.version == 2 {
		_ = one.write("memory.swap.max", "0") // absent without swap
	}
	return one
}

// addProcess moves the process into the group.
func (g *cgroup) addProcess(pid int) error {
	if g == nil {
		return nil
	}
	return g.write("cgroup.procs", strconv.Itoa(pid))
}

func (g *cgroup) write(file, text string) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0)
}

// outOfMemory reports whether the kernel killed a process of the group for lack of memory.
func (g *cgroup) outOfMemory() bool {
	if g == nil {
		return false
	}
	file := map[int]string{1: "memory.oom_control", 2: "memory.events"}[g.version]
	b, _ := os.ReadFile(filepath.Join(g.dir, file))
	return slices.ContainsFunc(strings.Split(string(b), "\n"), func(line string) bool {
		n, ok := strings.CutPrefix(line, "oom_kill ")
		return ok && n != "0"
	})
}

// remove removes the group; its processes must have ended.
func (g *cgroup) remove() {
	if g != nil {
		_ = os.Remove(g.dir)
	}
}
