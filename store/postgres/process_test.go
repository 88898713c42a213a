//go:build unix

package postgres

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// A campaign has more of both; see the Makefile.
var (
	kills     = flag.Int("postgres.kills", 10, "how often the server is killed under load")
	processes = flag.Int("postgres.processes", 8, "how many processes write meanwhile")
)

// childURL is the environment variable that makes a process of this test a writer.
const childURL, childRun = "WEIR_TEST_POSTGRES_URL", "WEIR_TEST_POSTGRES_RUN"

// childKey is the environment variable with the master key of a writer. One whose run has an odd number encrypts, the
// others only read with it.
const childKey = "WEIR_TEST_POSTGRES_KEY"

// childCodec returns the codec of a writer.
func childCodec(run string) (*codec.Codec, error) {
	text := os.Getenv(childKey)
	if text == "" {
		return nil, nil
	}
	key, err := codec.ParseMasterKey(text)
	if odd := run[len(run)-1]%2 == 1; odd {
		return codec.New(codec.Options{Compress: true, Key: &key}), err
	}
	return codec.New(codec.Options{Previous: []codec.MasterKey{key}}), err
}

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		if err := writeUntilStopped(url, os.Getenv(childRun)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writeUntilStopped appends commits to a run of its own until stdin is closed, and writes the
// number of each to stdout once it is acknowledged.
func writeUntilStopped(url, run string) error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	c, err := childCodec(run)
	if err != nil {
		return err
	}
	s, err := Open(context.Background(), url, Options{MaxConnections: 2, Codec: c})
	if err != nil {
		return err
	}
	w, err := newTestWriter(s, run)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := w.append(context.Background()); err != nil {
			return fmt.Errorf("commit %d: %w", w.seq, err)
		}
		fmt.Println(w.seq)
	}
	return s.Close()
}

// testWriter appends commits with one event to a run.
type testWriter struct {
	s     *Store
	lease store.Lease
	seq   int64 // of the last acknowledged commit
}

func newTestWriter(s *Store, run string) (*testWriter, error) {
	ctx := context.Background()
	if err := s.Create(ctx, store.NewRun{ID: run, Flow: "flow", Fingerprint: "f", At: time.UnixMilli(1)}); err != nil {
		return nil, err
	}
	l, err := s.Acquire(ctx, run, "writer of "+run, time.Hour)
	return &testWriter{s: s, lease: l}, err
}

func (w *testWriter) append(ctx context.Context) error {
	n := w.seq + 1
	a := store.Append{
		Commit: engine.Commit{
			Run: w.lease.Run, Seq: n, First: n, At: n,
			Events: []engine.Event{&engine.EffectCompleted{Key: "k", Result: fmt.Sprint("result ", n)}},
		},
		Fence: w.lease.Fence, Head: store.Head{Status: engine.Running, Waiting: []engine.Interrupt{}},
	}
	if err := w.s.Append(ctx, []store.Append{a})[0]; err != nil {
		return err
	}
	w.seq = n
	return nil
}

// checkCommits fails unless the run has exactly the commits that were acknowledged.
func checkCommits(t *testing.T, s *Store, run string, acknowledged int64) {
	t.Helper()
	n := int64(0)
	for c, err := range s.Commits(t.Context(), run, 0) {
		if err != nil {
			t.Fatalf("run %s: %v", run, err)
		}
		if n++; c.Seq != n || c.At != n || c.Events[0].(*engine.EffectCompleted).Result != fmt.Sprint("result ", n) {
			t.Fatalf("run %s: commit %d is %d at %d", run, n, c.Seq, c.At)
		}
	}
	if n != acknowledged {
		t.Errorf("run %s has %d commits, and %d were acknowledged", run, n, acknowledged)
	}
}

// writerProcess is a process that writes.
type writerProcess struct {
	run   string
	cmd   *exec.Cmd
	stdin io.Closer
	last  int64 // acknowledged; to be read after ended
	// started is closed with the first acknowledged commit.
	started, ended chan struct{}
}

func startWriter(tb testing.TB, url, run, key string, acknowledged chan<- struct{}) *writerProcess {
	tb.Helper()
	w := &writerProcess{run: run, cmd: exec.Command(os.Args[0]), started: make(chan struct{}), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), childURL+"="+url, childRun+"="+run, childKey+"="+key)
	w.cmd.Stderr = os.Stderr
	stdin, err := w.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	w.stdin = stdin
	go func() {
		defer close(w.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if _, _ = fmt.Sscan(lines.Text(), &w.last); w.last == 1 {
				close(w.started)
			}
			acknowledged <- struct{}{}
		}
	}()
	return w
}

// TestKilledServerLosesNothing kills the server while processes write, and compares what they
// were told with what is there.
func TestKilledServerLosesNothing(t *testing.T) {
	server := pgtest.Start(t)
	url := server.Schema(t)
	s := openAt(t, url, Options{Codec: encrypting(t, 1)})
	acknowledged := make(chan struct{})
	var writers []*writerProcess
	for i := range *processes {
		writers = append(writers, startWriter(t, url, fmt.Sprint("run", i), keyText(1), acknowledged))
	}
	count := func(n int) {
		for range n {
			select {
			case <-acknowledged:
			case <-time.After(time.Minute):
				t.Fatal("no commit was acknowledged for a minute")
			}
		}
	}
	for _, w := range writers { // a process that has not opened the store yet fails to open it
		for waiting := true; waiting; {
			select {
			case <-w.started:
				waiting = false
			case <-w.ended:
				t.Fatalf("writer of %s: %v", w.run, w.cmd.Wait())
			case <-acknowledged:
			}
		}
	}
	n := *kills
	if testing.Short() {
		n = min(n, 2)
	}
	for i := range n {
		count(20*len(writers) + i*7%50)
		server.Kill(t)
		server.Restart(t)
	}
	count(10 * len(writers))
	go func() {
		for range acknowledged { // what comes until they have stopped
		}
	}()
	total := int64(0)
	for _, w := range writers {
		_ = w.stdin.Close()
		<-w.ended
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("writer of %s: %v", w.run, err)
		}
		checkCommits(t, s, w.run, w.last)
		total += w.last
	}
	close(acknowledged)
	t.Logf("%d commits of %d processes, %d kills", total, len(writers), n)
}

// TestIDOfALostTransactionIsUsedAgain kills the server in the middle of a transaction. The server gives the id to
// another transaction later, and the first must not be taken for committed with it.
func TestIDOfALostTransactionIsUsedAgain(t *testing.T) {
	server := pgtest.Start(t)
	s := openAt(t, server.Schema(t), Options{})
	lost, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lost.exec("SELECT 1"); err != nil {
		t.Fatal(err)
	}
	lost.setMark()
	server.Kill(t)
	server.Restart(t)
	if err := lost.commit(); !errors.Is(err, errUnknownOutcome) {
		t.Fatal(err)
	}
	lost.release()
	status := func() (status string) {
		_ = s.queryRow(t.Context(), []any{&status}, "SELECT pg_xact_status($1::text::xid8)", lost.id)
		return status
	}
	for n := 0; status() != "committed"; n++ {
		if n == 1000 {
			t.Fatalf("transaction %s is not used again", lost.id)
		}
		id := fmt.Sprint("r", n)
		if err := s.Create(t.Context(), store.NewRun{ID: id, Flow: "flow", Fingerprint: "f", At: time.UnixMilli(1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.settle(t.Context(), lost.id, lost.mark, errUnknownOutcome); !errors.Is(err, errConnectionLost) {
		t.Errorf("the lost transaction: %v", err)
	}
}
