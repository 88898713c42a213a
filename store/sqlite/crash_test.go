package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/store"
)

// crashVariable turns the test binary into the process that is killed; its
// database is in its working directory.
const (
	crashVariable = "WEIR_CRASH_TEST"
	crashFile     = "weir.db"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashVariable) != "" {
		if err := appendUntilStopped(crashFile); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// appendUntilStopped continues a conversation and prints the number of each
// commit once it is acknowledged.
func appendUntilStopped(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	err = s.Create(ctx, store.NewRun{ID: "r", At: time.UnixMilli(1)})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	run, err := s.Run(ctx, "r")
	if err != nil {
		return err
	}
	l, err := s.Seize(ctx, "r", run.Owner, fmt.Sprint(os.Getpid()), time.Hour)
	if err != nil {
		return err
	}
	t := &talk{Rand: rand.New(rand.NewPCG(uint64(run.Commits), 2)), s: s, fence: l.Fence, seq: run.Commits, first: run.Events + 1, turn: 1}
	tb := &printing{}
	for n := 0; tb.failed == nil; n++ {
		t.say(tb, t.words(30+n%90), t.words(10+n%1500))
		for _, c := range t.wrote {
			fmt.Println(c.Seq)
		}
		t.wrote = nil
	}
	return tb.failed
}

// printing stands in for a test in the process that is killed.
type printing struct {
	testing.TB
	failed error
}

func (*printing) Helper()                  {}
func (*printing) Context() context.Context { return context.Background() }
func (p *printing) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}

func TestAcknowledgedCommitsSurviveAKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), crashFile)
	r := rand.New(rand.NewPCG(3, 4))
	acknowledged, kills := int64(0), 30
	if testing.Short() {
		kills = 10
	}
	for kill := range kills {
		last := appendUntilKilled(t, path, 1+r.IntN(40))
		if last <= acknowledged {
			t.Fatalf("kill %d: nothing was appended after commit %d", kill, acknowledged)
		}
		acknowledged = last
		acknowledged = afterKill(t, path, acknowledged)
	}
	t.Logf("%d commits over %d kills", acknowledged, kills)
}

// afterKill checks what is in the database and returns how many commits.
func afterKill(t *testing.T, path string, acknowledged int64) int64 {
	t.Helper()
	s := openAt(t, path, Options{})
	seq, messages := int64(0), 0
	for c, err := range s.Commits(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; c.Seq != seq {
			t.Fatalf("commit %d after %d", c.Seq, seq-1)
		}
		if strings.HasPrefix(c.Events[0].Kind(), "effect") {
			messages += 2
		}
	}
	if seq < acknowledged || seq > acknowledged+2 {
		t.Fatalf("%d commits, %d acknowledged", seq, acknowledged)
	}
	ms, err := s.Messages(t.Context(), "r", "main", 0, 1<<20)
	if err != nil || len(ms) != messages {
		t.Fatalf("%d messages of %d (%v)", len(ms), messages, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return seq
}

// appendUntilKilled starts the process and kills it after it has printed n
// numbers; it returns the last one.
func appendUntilKilled(t *testing.T, path string, n int) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashVariable+"=1")
	cmd.Dir = filepath.Dir(path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var last int64
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Errorf("the process says %q", lines.Text())
		}
		if i == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	return last
}
