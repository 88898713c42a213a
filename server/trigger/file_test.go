package trigger_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server/trigger"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// inbox is a folder with a trigger, a clock, and what was started.
type inbox struct {
	*testing.T

	dir     string
	now     time.Time
	runner  *trigger.Runner
	store   store.Store
	started []string // NAME=CONTENT
	runs    map[string]bool
	refuse  string
	later   bool // nothing may start at present
	ended   bool
	long    bool // runs do not end by themselves
}

func newInbox(t *testing.T, x trigger.Trigger) *inbox {
	t.Helper()
	b := &inbox{T: t, dir: t.TempDir(), now: begin(), runs: map[string]bool{}, ended: true}
	b.store = memory.NewWithClock(func() time.Time { return b.now })
	b.restart()
	x.ID, x.Kind, x.Flow, x.Folder, x.Payload, x.Inputs = "a", trigger.Files, "f", "inbox", "doc", []byte("{}")
	if err := b.runner.Put(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
	return b
}

// restart continues in a new process.
func (b *inbox) restart() {
	b.runner = trigger.New(trigger.Options{
		Store: b.store.Capabilities().Documents, Key: []byte("key"), Clock: func() time.Time { return b.now },
		Folder: func(context.Context, *trigger.Trigger) (trigger.Folder, error) {
			return trigger.Folder{Path: b.dir, MaxSize: 20}, nil
		},
		Start: func(_ context.Context, _ *trigger.Trigger, f trigger.Firing) (string, error) {
			if b.later {
				return "", fmt.Errorf("the flow is paused (%w)", trigger.ErrLater)
			}
			if b.refuse == "" && !b.runs[f.Run] {
				b.runs[f.Run] = true
				b.ended = !b.long
				b.started = append(b.started, f.File.Name+"="+string(f.File.Data))
			}
			return b.refuse, nil
		},
		Ended: func(context.Context, string) (bool, error) { return b.ended, nil },
	})
}

func (b *inbox) write(name, text string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// touch sets the time of a file to so many seconds after the beginning: file systems may have coarse times.
func (b *inbox) touch(name string, seconds int) {
	b.Helper()
	at := begin().Add(time.Duration(seconds) * time.Second)
	if err := os.Chtimes(filepath.Join(b.dir, name), at, at); err != nil {
		b.Fatal(err)
	}
}

// look has the runner look into the folder so many times, each when it is due.
func (b *inbox) look(times int) {
	b.Helper()
	for range times {
		b.now = b.now.Add(time.Minute)
		if err := b.runner.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// expect compares what was started since the last time.
func (b *inbox) expect(what string, want ...string) {
	b.Helper()
	slices.Sort(b.started)
	if !slices.Equal(b.started, want) {
		b.Errorf("%s: started %q, not %q", what, b.started, want)
	}
	b.started = nil
}

func (b *inbox) lastError() string {
	b.Helper()
	x, err := b.runner.Get(b.Context(), "a")
	if err != nil {
		b.Fatal(err)
	}
	return x.LastError
}

func (b *inbox) states() string {
	b.Helper()
	list, err := b.runner.Files(b.Context(), "a", "", 100)
	if err != nil {
		b.Fatal(err)
	}
	var out []string
	for _, f := range list {
		out = append(out, strings.TrimRight(f.Name+" "+f.State+" "+f.Error, " "))
	}
	return strings.Join(out, "; ")
}

// TestEachVersionOfAFileStartsOneRun follows a file from its first bytes to its removal, with a restart after each step.
func TestEachVersionOfAFileStartsOneRun(t *testing.T) {
	t.Parallel()
	b := newInbox(t, trigger.Trigger{})
	for _, step := range []struct {
		what string
		do   func()
		want []string
	}{
		{"an empty folder", func() { b.look(2) }, nil},
		{"an empty file", func() { b.write("x", ""); b.look(3) }, nil},
		{"a file that was seen once", func() { b.write("x", "one"); b.touch("x", 1); b.look(1) }, nil},
		{"a file that grows", func() { b.write("x", "one two"); b.touch("x", 2); b.look(1) }, nil},
		{"a file of the same size that was written again", func() { b.write("x", "two one"); b.touch("x", 3); b.look(1) }, nil},
		{"a file that stays", func() { b.look(1) }, []string{"x=two one"}},
		{"the file again", func() { b.look(5) }, nil},
		{"the file with another time", func() { b.touch("x", 4); b.look(3) }, nil},
		{"another version", func() { b.write("x", "three"); b.touch("x", 5); b.look(3) }, []string{"x=three"}},
		{"the first version again", func() { b.write("x", "two one"); b.touch("x", 6); b.look(3) }, nil},
		{"another name", func() {
			_ = os.Rename(filepath.Join(b.dir, "x"), filepath.Join(b.dir, "y"))
			b.look(3)
		}, []string{"y=two one"}},
		{"no file", func() { _ = os.Remove(filepath.Join(b.dir, "y")); b.look(3) }, nil},
		{"the file is back", func() { b.write("y", "two one"); b.touch("y", 7); b.look(3) }, nil},
	} {
		step.do()
		b.expect(step.what, step.want...)
		b.restart()
	}
}

// TestWhatIsNoFileOfItsFolderStartsNothing enumerates names, kinds and sizes.
func TestWhatIsNoFileOfItsFolderStartsNothing(t *testing.T) {
	t.Parallel()
	b := newInbox(t, trigger.Trigger{Pattern: "*.txt"})
	outside := filepath.Join(t.TempDir(), "outside.txt")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.write(".hidden.txt", "hidden")
	b.write("other.md", "other")
	b.write("large.txt", strings.Repeat("x", 21))
	b.write("fits.txt", strings.Repeat("x", 20))
	if err := os.MkdirAll(filepath.Join(b.dir, "folder.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write("folder.txt/inner.txt", "inner")
	refused := map[string]string{"large.txt": "the file has more than 20 bytes"}
	for name, target := range map[string]string{"link.txt": outside, "inside.txt": "fits.txt", "dangling.txt": "nothing"} {
		if os.Symlink(target, filepath.Join(b.dir, name)) == nil {
			refused[name] = "a symbolic link is not followed"
		}
	}
	if makeFIFO(filepath.Join(b.dir, "fifo.txt")) == nil {
		refused["fifo.txt"] = "it is not a regular file"
	}
	b.look(4)
	b.expect("a folder with all kinds", "fits.txt="+strings.Repeat("x", 20))
	var want []string
	for name, why := range refused { // order: sorted below
		want = append(want, name+" refused "+why)
	}
	want = append(want, "fits.txt started")
	slices.Sort(want)
	if got := b.states(); got != strings.Join(want, "; ") {
		t.Errorf("%s, not %v", got, want)
	}
	b.write("line\nbreak.txt", "x")
	b.write("new.txt", "new")
	b.look(3)
	b.expect("with a name that cannot be shown")
	if got := b.lastError(); !strings.Contains(got, `"line\nbreak.txt"`) {
		t.Error(got)
	}
	_ = os.Remove(filepath.Join(b.dir, "line\nbreak.txt"))
	b.look(3)
	b.expect("without that name", "new.txt=new")
	if got := b.lastError(); got != "" {
		t.Error(got)
	}
}

// TestAFileWaitsUntilItsRunMayStart enumerates why a file starts nothing at present, or never.
func TestAFileWaitsUntilItsRunMayStart(t *testing.T) {
	t.Parallel()
	b := newInbox(t, trigger.Trigger{Overlap: "queue"})
	b.later = true
	b.write("a", "1")
	b.touch("a", 1)
	b.look(5)
	b.expect("while the flow is paused")
	if got := b.lastError(); got != "waits: the flow is paused (it is tried again)" {
		t.Error(got)
	}
	b.later, b.long = false, true
	b.look(2)
	b.expect("after that", "a=1")
	b.write("b", "2")
	b.touch("b", 2)
	b.write("c", "3")
	b.touch("c", 3)
	b.look(5)
	b.expect("while the run before has not ended")
	b.ended = true
	b.look(4)
	b.expect("after its end", "b=2")
	b.ended = true
	b.look(4)
	b.expect("after the end of the next", "c=3")
	b.ended, b.long, b.refuse = true, false, "the input does not fit"
	b.write("d", "4")
	b.touch("d", 4)
	b.look(3)
	b.refuse = ""
	b.look(3)
	b.expect("after it was refused")
	if got := b.lastError(); got != "d: the input does not fit" {
		t.Error(got)
	}
	b.touch("d", 5)
	b.look(3)
	b.expect("touched after it was refused", "d=4")
	x, err := b.runner.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	x.Paused = true
	if err := b.runner.Put(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	b.write("e", "5")
	b.look(5)
	b.expect("while the trigger is paused")
	x.Paused = false
	if err := b.runner.Put(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	b.look(3)
	b.expect("after the pause", "e=5")
	_ = os.Rename(b.dir, b.dir+".gone")
	b.look(2)
	if got := b.lastError(); !strings.HasPrefix(got, "waits: ") {
		t.Errorf("without the folder: %q", got)
	}
	_ = os.Rename(b.dir+".gone", b.dir)
	b.look(3)
	b.expect("with the folder again")
	if got := b.lastError(); got != "" {
		t.Error(got)
	}
	if err := b.runner.Delete(t.Context(), "a"); err != nil || b.states() != "" {
		t.Errorf("after the deletion: %q, %v", b.states(), err)
	}
}

func TestAFolderWithTooManyFilesStartsNothing(t *testing.T) {
	t.Parallel()
	b := newInbox(t, trigger.Trigger{})
	for i := range trigger.MaxFiles + 1 {
		b.write(fmt.Sprint(i), "")
	}
	b.write("0", "full")
	b.look(3)
	b.expect("too many files")
	if got := b.lastError(); !strings.Contains(got, "more than 10000 files") {
		t.Error(got)
	}
	_ = os.Remove(filepath.Join(b.dir, "1"))
	b.look(3)
	b.expect("as many as may be", "0=full")
}

func TestTriggersByFilesRefuseWhatTheyCannotDo(t *testing.T) {
	t.Parallel()
	b := newInbox(t, trigger.Trigger{})
	good := trigger.Trigger{ID: "b", Kind: trigger.Files, Flow: "f", Folder: "inbox", Payload: "doc"}
	for what, change := range map[string]func(x *trigger.Trigger){
		"no folder":             func(x *trigger.Trigger) { x.Folder = "" },
		"no payload":            func(x *trigger.Trigger) { x.Payload = "" },
		"a bad pattern":         func(x *trigger.Trigger) { x.Pattern = "[" },
		"a schedule":            func(x *trigger.Trigger) { x.Schedule = "* * * * *" },
		"a zone":                func(x *trigger.Trigger) { x.Zone = "UTC" },
		"missed":                func(x *trigger.Trigger) { x.Missed = "all" },
		"skip":                  func(x *trigger.Trigger) { x.Overlap = "skip" },
		"cancel":                func(x *trigger.Trigger) { x.Overlap = "cancel" },
		"a folder of a webhook": func(x *trigger.Trigger) { x.Kind = trigger.Webhook },
		"a pattern of a schedule": func(x *trigger.Trigger) {
			*x = trigger.Trigger{ID: "b", Kind: trigger.Schedule, Schedule: "* * * * *", Pattern: "*"}
		},
	} {
		x := good
		if change(&x); b.runner.Put(t.Context(), &x) == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if err := b.runner.Put(t.Context(), &good); err != nil {
		t.Error(err)
	}
}
