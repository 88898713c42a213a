package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/store/sqlite"
)

// parentRun returns the run that a journey's is a fork of.
func (j *trial) parentRun() string { return j.run + "-was" }

// runParent makes that run, undisturbed, up to its second question, or its first where
// it has one alone.
func (j *trial) runParent(tb testing.TB) error {
	tb.Helper()
	if j.scenario.forkFrom == "" {
		return nil
	}
	steps := [][]string{{"run", j.harness.flow(j.scenario.flow), "--id", j.parentRun(), "-i", j.baseInput(j.parentRun())}}
	if j.scenario.flow == "talk" {
		steps = append(steps, []string{"answer", j.parentRun(), "talk#1/user:ask#1", "hello"}, []string{"answer", j.parentRun(), "talk#2/user:ask#1", "a berth"})
	}
	for _, args := range steps {
		code, out, err := j.harness.weir(tb, append(args, "--json", "--db", j.db())...)
		if err != nil || code != 3 {
			return fmt.Errorf("weir %s exited with %d (%w): %s", strings.Join(args, " "), code, err, out)
		}
	}
	var err error
	j.parentBefore, err = j.parentContents(tb)
	return err
}

// checkParentUnchanged checks that the run that this one is a fork of, and those below it, are
// as they were.
func (j *trial) checkParentUnchanged(tb testing.TB) error {
	tb.Helper()
	now, err := j.parentContents(tb)
	if err == nil && now != j.parentBefore {
		err = fmt.Errorf("the run that it is a fork of was touched:\n%s\nit was\n%s", now, j.parentBefore)
	}
	return err
}

// parentContents returns all that is kept of that run and those below it, from a copy.
func (j *trial) parentContents(tb testing.TB) (string, error) {
	tb.Helper()
	path, err := j.copyDatabase()
	if err != nil {
		return "", err
	}
	s, err := sqlite.Open(tb.Context(), path, sqlite.Options{})
	if err != nil {
		return "", err
	}
	defer s.Close() //nolint:errcheck // only read
	r := newRecord()
	if err := r.addTree(tb.Context(), s, j.parentRun(), ""); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, o := range r.runs {
		o.row.Fence = 0 // it grows whenever a process acquires the run
		fmt.Fprintf(&b, "%s %+v\n%s", o.id, o.row, strings.Join(o.lines, ""))
	}
	asks, err := os.ReadFile(filepath.Join(j.harness.asks, j.parentRun()+".asks"))
	return b.String() + string(asks), err
}

// removeShared has a record hold only what a fork itself has done: what it shares was
// the other run's.
func (r *record) removeShared(o *journal) {
	clear(r.effects)
	clear(r.done)
	clear(r.completed)
	clear(r.answered)
	o.open = nil
}
