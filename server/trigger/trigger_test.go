package trigger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/server/trigger"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/postgres"
	"github.com/weir-run/weir/store/sqlite"
)

// begin returns when the triggers of the tests are made; their first time is a minute later.
func begin() time.Time { return time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC) }

func add(t *testing.T, r *trigger.Runner, x trigger.Trigger) {
	t.Helper()
	x.Kind, x.Schedule, x.Flow, x.Inputs = trigger.Schedule, "* * * * *", "f", []byte("{}")
	if err := r.Put(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
}

func TestMissedAndOverlappingTimesFollowTheirSetting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missed, overlap string
		late            time.Duration
		ended           bool
		want            int
	}{
		{"", "", 61 * time.Second, true, 1},
		{"skip", "", 10*time.Minute + 90*time.Second, true, 1}, // of the eleven, the last is not late
		{"one", "", 10 * time.Minute, true, 1},
		{"all", "", 10 * time.Minute, true, 10},
		{"all", "", 24 * time.Hour, true, 100},
		{"all", "skip", 10 * time.Minute, false, 1},
		{"all", "skip", 10 * time.Minute, true, 10},
		{"all", "allow", 10 * time.Minute, false, 10},
	} {
		now := begin()
		s := memory.NewWithClock(func() time.Time { return now })
		var started []string
		r := trigger.New(trigger.Options{
			Store: s, Key: []byte("key"), Clock: func() time.Time { return now },
			Start: func(_ context.Context, _ *trigger.Trigger, f trigger.Firing) (string, error) {
				started = append(started, f.Run)
				return "", nil
			},
			Ended: func(context.Context, string) (bool, error) { return c.ended, nil },
		})
		add(t, r, trigger.Trigger{ID: "a", Missed: c.missed, Overlap: c.overlap})
		now = begin().Add(c.late)
		if err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(started); len(slices.Compact(started)) != c.want {
			t.Errorf("missed %q, overlap %q, %v late: %d runs, not %d", c.missed, c.overlap, c.late, len(started), c.want)
		}
	}
}

func TestTimesAreSkippedThatAreAllTooLate(t *testing.T) {
	t.Parallel()
	now := begin()
	s := memory.NewWithClock(func() time.Time { return now })
	starts := 0
	r := trigger.New(trigger.Options{
		Store: s, Key: []byte("key"), Clock: func() time.Time { return now },
		Start: func(context.Context, *trigger.Trigger, trigger.Firing) (string, error) { starts++; return "", nil },
		Ended: func(context.Context, string) (bool, error) { return true, nil },
	})
	x := trigger.Trigger{ID: "a", Kind: trigger.Schedule, Schedule: "@hourly", Flow: "f", Inputs: []byte("{}")}
	if err := r.Put(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
	now = begin().Add(150 * time.Minute)
	if err := r.Step(t.Context()); err != nil || starts != 0 {
		t.Errorf("%d runs, %v", starts, err)
	}
	if y, err := r.Get(t.Context(), "a"); err != nil || !y.Next.Equal(begin().Add(3*time.Hour)) {
		t.Errorf("%+v, %v", y, err)
	}
}

// TestATriggerThatACopyHoldsFiresWhenItIsResumed holds a trigger as a copy of a store does; see store.HeldKinds.
func TestATriggerThatACopyHoldsFiresWhenItIsResumed(t *testing.T) {
	t.Parallel()
	now := begin()
	s := memory.NewWithClock(func() time.Time { return now })
	starts := 0
	r := trigger.New(trigger.Options{
		Store: s, Key: []byte("key"), Clock: func() time.Time { return now },
		Start: func(context.Context, *trigger.Trigger, trigger.Firing) (string, error) { starts++; return "", nil },
		Ended: func(context.Context, string) (bool, error) { return true, nil },
	})
	add(t, r, trigger.Trigger{ID: "a", Missed: "all"})
	d, err := s.Document(t.Context(), store.TriggerKind, "a")
	if err != nil || !slices.Contains(store.HeldKinds(), d.Kind) {
		t.Fatal(d, err)
	}
	d.Body, d.Due = []byte(strings.Replace(string(d.Body), `"paused":false`, `"paused":true`, 1)), time.Time{}
	if _, err := s.PutDocument(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	now = begin().Add(time.Hour)
	if err := r.Step(t.Context()); err != nil || starts != 0 {
		t.Errorf("%d runs while the trigger is held, %v", starts, err)
	}
	x, err := r.Get(t.Context(), "a")
	if err != nil || !x.Paused {
		t.Fatalf("%+v, %v", x, err)
	}
	x.Paused = false
	if err := r.Put(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	now = begin().Add(time.Hour + 90*time.Second)
	if err := r.Step(t.Context()); err != nil || starts != 1 {
		t.Errorf("%d runs after the trigger was resumed, %v", starts, err)
	}
}

func TestAFiringThatCouldNotStartIsTriedAgain(t *testing.T) {
	t.Parallel()
	now := begin()
	s := memory.NewWithClock(func() time.Time { return now })
	down, starts := true, map[string]int{}
	r := trigger.New(trigger.Options{
		Store: s, Key: []byte("key"), Clock: func() time.Time { return now },
		Start: func(_ context.Context, _ *trigger.Trigger, f trigger.Firing) (string, error) {
			if down {
				return "", errors.New("the store does not answer")
			}
			starts[f.Run]++
			return "", nil
		},
		Ended: func(context.Context, string) (bool, error) { return true, nil },
	})
	add(t, r, trigger.Trigger{ID: "a", Missed: "all"})
	now = begin().Add(time.Minute)
	if err := r.Step(t.Context()); err == nil {
		t.Error("the failure is not reported")
	}
	down, now = false, now.Add(2*time.Minute)
	if err := r.Step(t.Context()); err != nil || len(starts) != 3 {
		t.Errorf("%v, %v", starts, err)
	}
}

// The parameters of a process of TestSeveralProcessesStartOneRunForEachFiring.
const (
	databaseOfProcess = "WEIR_TEST_TRIGGER_DATABASE"
	crashOfProcess    = "WEIR_TEST_TRIGGER_CRASH" // it ends after this many starts
	folderOfProcess   = "WEIR_TEST_TRIGGER_FOLDER"
	laterOfProcess    = "WEIR_TEST_TRIGGER_LATER" // how long after the beginning its clock starts
)

const triggers, minutes = 6, 10

// TestTriggerProcess is one of the processes; by itself it does nothing.
func TestTriggerProcess(t *testing.T) {
	path := os.Getenv(databaseOfProcess)
	if path == "" {
		t.Skip("it is started by TestSeveralProcessesStartOneRunForEachFiring")
	}
	if os.Getenv(folderOfProcess) != "" {
		watchAsProcess(t, path)
		return
	}
	r, end := openRunner(t, path, begin().Add(minutes*time.Minute), os.Getenv(crashOfProcess))
	defer end()
	if err := r.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// openStore opens the file at a path, or the database at a URL of PostgreSQL.
func openStore(t *testing.T, path string, clock func() time.Time) *store.Full {
	t.Helper()
	var s store.Store
	var err error
	if store.IsURL(path) {
		s, err = postgres.Open(t.Context(), path, postgres.Options{Clock: clock, MaxConnections: 4})
	} else {
		s, err = sqlite.Open(t.Context(), path, sqlite.Options{Clock: clock})
	}
	if err != nil {
		t.Fatal(err)
	}
	return store.Complete(s)
}

// openRunner opens a database with a Weir and a Runner that starts runs in it.
func openRunner(t *testing.T, path string, now time.Time, crash string) (*trigger.Runner, func()) {
	t.Helper()
	return openRunnerWithClock(t, path, func() time.Time { return now }, crash)
}

func openRunnerWithClock(t *testing.T, path string, clock func() time.Time, crash string) (*trigger.Runner, func()) {
	t.Helper()
	s := openStore(t, path, clock)
	w, err := weir.Open(weir.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("f", []byte(`{weir: 1, name: f, nodes: {a: {type: manualInput, with: {text: x}}}, outputs: {x: "{{ a.text }}"}}`))
	if err != nil {
		t.Fatal(err)
	}
	starts := 0
	r := trigger.New(trigger.Options{
		Store: s, Key: []byte("key"), Clock: clock,
		Start: func(ctx context.Context, x *trigger.Trigger, f2 trigger.Firing) (string, error) {
			if _, err := s.Run(ctx, f2.Run); err == nil {
				return "", nil
			}
			run, err := w.Start(ctx, f, weir.Start{ID: f2.Run, Origin: originOf(x, f2)})
			if errors.Is(err, store.ErrExists) {
				return "", nil
			}
			if err == nil {
				_, err = run.Wait(ctx)
			}
			if starts++; fmt.Sprint(starts) == crash {
				os.Exit(7)
			}
			return "", err
		},
		Ended: func(context.Context, string) (bool, error) { return true, nil },
		Folder: func(context.Context, *trigger.Trigger) (trigger.Folder, error) {
			return trigger.Folder{Path: os.Getenv(folderOfProcess), MaxSize: 100}, nil
		},
	})
	return r, func() {
		if err := w.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

func originOf(x *trigger.Trigger, f trigger.Firing) string {
	if f.File != nil {
		return "file:" + f.File.Name
	}
	return "schedule:" + x.ID
}

func TestSeveralProcessesStartOneRunForEachFiring(t *testing.T) {
	t.Parallel()
	testSeveralProcesses(t, filepath.Join(t.TempDir(), "weir.db"))
}

// testSeveralProcesses has processes, two of which crash, fire the triggers of one database.
func testSeveralProcesses(t *testing.T, path string) {
	t.Helper()
	r, end := openRunner(t, path, begin(), "")
	for i := range triggers {
		add(t, r, trigger.Trigger{ID: fmt.Sprint("trigger", i), Missed: "all"})
	}
	end()
	var processes []*exec.Cmd
	for i := range 4 {
		p := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTriggerProcess$")
		p.Env = append(os.Environ(), databaseOfProcess+"="+path)
		if i < 2 {
			p.Env = append(p.Env, crashOfProcess+"=3")
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, p)
	}
	for i, p := range processes {
		if err := p.Wait(); err != nil && i >= 2 {
			t.Error(err)
		}
	}
	// What the processes that ended had taken is free again after a minute.
	r, end = openRunner(t, path, begin().Add(minutes*time.Minute+2*time.Minute), "")
	defer end()
	if err := r.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, path, nil)
	defer s.Close() //nolint:errcheck // it was only read
	runs, err := s.Runs(t.Context(), store.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	byTrigger := map[string]int{}
	for i := range runs {
		byTrigger[strings.TrimPrefix(runs[i].Origin, "schedule:")]++
		if runs[i].Head.Status.String() != "completed" {
			t.Errorf("run %s is %v", runs[i].ID, runs[i].Head.Status)
		}
	}
	for i := range triggers {
		// The last two minutes passed for all before the last look.
		if n := byTrigger[fmt.Sprint("trigger", i)]; n != minutes+2 {
			t.Errorf("trigger %d: %d runs, not %d", i, n, minutes+2)
		}
	}
}
