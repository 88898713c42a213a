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

// processScope identifies the machine and, on Linux, the boot and the namespace of its process ids: two processes
// with the same scope can check whether the other is alive. Machines with the same name have different boots.
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

// ownerDead reports whether an owner, "here:pid:random", is a process of this machine that no longer exists.
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
		return true // Windows: the process does not exist
	}
	err = p.Signal(syscall.Signal(0))
	return errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) || isZombie(pid)
}

// isZombie reports whether a process has ended and was not reaped by its parent, for example in a container whose
// first process never does. It still has its number, but no threads.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false // other systems have no such file
	}
	// "PID (NAME) STATE ...": a name may contain anything. The number of threads is the 18th field after it.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(f) > 17 && (f[0] == "Z" || f[0] == "X") && (f[17] == "0" || f[17] == "1")
}
