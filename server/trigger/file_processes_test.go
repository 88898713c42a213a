package trigger_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/server/trigger"
	"github.com/weir-run/weir/store"
)

const folderFiles = 30

// watchAsProcess looks into the folder as one of several processes, whose clocks each go on by themselves.
func watchAsProcess(t *testing.T, path string) {
	t.Helper()
	later, err := time.ParseDuration(os.Getenv(laterOfProcess))
	if err != nil {
		t.Fatal(err)
	}
	now := begin().Add(later)
	r, end := openRunnerWithClock(t, path, func() time.Time { return now }, os.Getenv(crashOfProcess))
	defer end()
	for range 40 {
		now = now.Add(11 * time.Second)
		if err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSeveralProcessesStartOneRunForEachFile(t *testing.T) {
	t.Parallel()
	testProcessesOnFolder(t, filepath.Join(t.TempDir(), "weir.db"))
}

// testProcessesOnFolder has processes, two of which crash, look into one folder, whose files are written while they do.
func testProcessesOnFolder(t *testing.T, path string) {
	t.Helper()
	dir := t.TempDir()
	r, end := openRunner(t, path, begin(), "")
	x := trigger.Trigger{ID: "files", Kind: trigger.Files, Flow: "f", Folder: "inbox", Payload: "doc", Inputs: []byte("{}")}
	if err := r.Put(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
	end()
	writeRound(t, dir, 1)
	watchTogether(t, path, dir, 1, 4, 2)
	watchTogether(t, path, dir, 2, 1, 0) // what the processes that ended had taken
	writeRound(t, dir, 2)
	watchTogether(t, path, dir, 3, 3, 1)
	watchTogether(t, path, dir, 4, 1, 0)
	s := openStore(t, path, nil)
	defer s.Close() //nolint:errcheck // it was only read
	runs, err := s.Runs(t.Context(), store.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	byFile := map[string]int{}
	for i := range runs {
		byFile[runs[i].Origin]++
	}
	for i := range folderFiles {
		if n := byFile[fmt.Sprintf("file:%02d", i)]; n != 2 {
			t.Errorf("file %d: %d runs for two versions", i, n)
		}
	}
}

// writeRound writes another version of each file.
func writeRound(t *testing.T, dir string, round int) {
	t.Helper()
	for i := range folderFiles {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d", i)), fmt.Appendf(nil, "round %d of %d", round, i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// watchTogether has so many processes look into the folder, so many hours after the beginning. The first of them crash.
func watchTogether(t *testing.T, path, dir string, hours, count, crashing int) {
	t.Helper()
	var processes []*exec.Cmd
	for i := range count {
		p := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTriggerProcess$")
		p.Env = append(os.Environ(), databaseOfProcess+"="+path, folderOfProcess+"="+dir, fmt.Sprintf("%s=%dh", laterOfProcess, hours))
		if i < crashing {
			p.Env = append(p.Env, crashOfProcess+"=2")
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, p)
	}
	for i, p := range processes {
		if err := p.Wait(); err != nil && i >= crashing {
			t.Error(err)
		}
	}
}
