package crash_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-run/weir/internal/crash"
)

func TestRunContinuesAfterStopAtAnyWrite(t *testing.T) {
	if *only != "" {
		t.Skip("-crash.point is about kills")
	}
	r := newHarness(t)
	undisturbed := r.baselines(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		c := &campaign{rig: r, baselines: undisturbed, signal: signal, begin: time.Now(), table: make([]row, len(undisturbed))}
		n := *stops
		if testing.Short() {
			n = len(undisturbed)
		}
		c.run(t, plan(undisturbed, n, func(way scenario) bool { // Ctrl-C in a chat cancels the turn
			return signal == syscall.SIGINT && len(way.messages) > 0
		}))
		t.Logf("%v: %s", signal, c)
	}
}

func TestOnlyLiveProcessKeepsItsRun(t *testing.T) {
	r := newHarness(t)
	dir := t.TempDir()
	db := filepath.Join(dir, "weir.db")
	one := exec.CommandContext(t.Context(), r.binary, "run", r.flow("long"), "--id", "long", "--events", "--db", db)
	one.Env = r.env
	events, err := one.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(events); lines.Scan(); {
		if strings.Contains(lines.Text(), `"type":"node.waiting"`) {
			break
		}
	}
	for _, args := range [][]string{{"resume", "long"}, {"skip", "long", "rest"}} {
		code, out, err := r.weir(t, append(args, "--db", db)...)
		if err != nil { // it drives the run, which waits ten minutes
			t.Errorf("%v: the live process has lost its lease, which it has to renew every few seconds, or was not asked: %s", err, out)
		}
		if code != 1 || !strings.Contains(out, "drives run long") {
			t.Errorf("weir %v beside a live process: exit code %d, %s", args, code, out)
		}
	}
	if err := one.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = one.Wait() // it was killed
	begin := time.Now()
	code, out, err := r.weir(t, "skip", "long", "rest", "--db", db)
	if err != nil || code != 0 {
		t.Errorf("weir skip after the process has died: exit code %d, %v, %s", code, err, out)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("it took %s: the dead process's lease was waited for", d)
	}
}

// waitTimeout is how long a command may take that has next to nothing to do.
const waitTimeout = 2 * time.Minute

// weir runs the binary and returns its exit code and all that it printed. One that
// does not end is killed, which is an error.
func (r *harness) weir(tb testing.TB, args ...string) (int, string, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), waitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.binary, args...)
	cmd.Env, cmd.WaitDelay = r.env, time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return -1, string(out), fmt.Errorf("weir %s did not end in %s", strings.Join(args, " "), waitTimeout)
	}
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return -1, string(out), err
	}
	return cmd.ProcessState.ExitCode(), string(out), nil
}

func TestFullDiskLeavesRunResumable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	r := newHarness(t)
	undisturbed := r.baselines(t, "each")
	each := undisturbed[len(undisturbed)-1]
	full := 0
	for i := range 16 {
		j := r.newTrial(each.scenario, fmt.Sprintf("full%d", i))
		stopped, err := fillDisk(t, j, int64(i)*20<<10)
		if err == nil {
			err = j.runToCompletion(t)
		}
		if err == nil {
			err = j.check(t, each)
		}
		if err != nil {
			t.Errorf("%d KiB left: %v", i*20, err)
		}
		if stopped {
			full++
		}
	}
	if full < 5 {
		t.Errorf("the disk was full in %d runs of 16", full)
	}
}

// fillDisk starts a journey where there is room for the database and left bytes
// more, and makes room when it has stopped.
func fillDisk(t *testing.T, j *trial, left int64) (stopped bool, err error) {
	t.Helper()
	if err := os.MkdirAll(j.data(), 0o700); err != nil {
		return false, err
	}
	size, err := os.Stat(j.harness.database)
	if err != nil {
		return false, err
	}
	room := fmt.Sprintf("size=%d", size.Size()+64<<10+left)
	if err := syscall.Mount("tmpfs", j.data(), "tmpfs", 0, room); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(j.data(), 0); err != nil {
			t.Error(err)
		}
	})
	if err := j.prepare(); err != nil {
		return false, err
	}
	code, err := j.process(t, j.start())
	if err != nil {
		return false, err
	}
	said := j.stderr()
	if err := syscall.Mount("", j.data(), "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		return false, err
	}
	if _, err = j.afterKill(t); code == 0 || err != nil {
		return false, err
	}
	if code != 1 || !strings.Contains(said, "the disk is full") {
		return true, fmt.Errorf("exit code %d, %s", code, said)
	}
	j.kills, j.killed = []int{0}, []crash.Step{{}} // what was in flight may be asked for again
	return true, nil
}
