package runner

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processScope names the machine and, on Linux, the namespace in which its process ids
// count and the boot since which they do: processes of one here can tell whether
// the other lives. Machines that were given one name differ in their boot.
func processScope() string {
	host, _ := os.Hostname()
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		host += "+" + strings.ReplaceAll(strings.TrimSpace(string(boot)), "-", "")
	}
	if ns, err := os.Readlink(filepath.Join("/proc", "self", "ns", "pid")); err == nil { // "pid:[4026531836]"
		host += "+" + strings.Trim(strings.TrimPrefix(ns, "pid:"), "[]")
	}
	return strings.ReplaceAll(host, ":", "_")
}

// ownerDead reports whether an owner, "here:pid:random", is a process of this
// machine that is not there any more.
func ownerDead(owner string) bool {
	parts := strings.Split(owner, ":")
	if len(parts) != 3 || parts[0] != processScope() {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return true // Windows: there is no such process
	}
	err = p.Signal(syscall.Signal(0))
	return errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) || isZombie(pid)
}

// isZombie reports whether a process has ended and its parent has not asked yet
// how, as it is where a container's first process never asks. It still has its
// number, and no thread that could do anything.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false // another system, which tells by other ways
	}
	// "PID (NAME) STATE ...": a name may hold anything. The number of threads is
	// the 18th behind it.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(f) > 17 && (f[0] == "Z" || f[0] == "X") && (f[17] == "0" || f[17] == "1")
}
