//go:build linux

package temporal_test

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/runner"
)

var restarts = flag.Int("temporal.restarts", 2, "how often the campaign kills the server of Temporal")

// TestTheServerOfTemporalIsRestarted kills the server, which keeps its data in a file, while runs, rounds of sessions and
// competing answers are in progress. Senders repeat what an outage refused.
func TestTheServerOfTemporalIsRestarted(t *testing.T) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			w, s := newOwnServer(t)
			if name == "PostgreSQL" {
				p := pgtest.Start(t)
				w.database = p.URL(p.Address(), "")
			}
			restartCampaign(w, s, *restarts)
		})
	}
}

// ownServer is a server with a file that a test may kill.
type ownServer struct {
	*server
	file string
}

// newOwnServer returns a world with a server of its own.
func newOwnServer(t *testing.T) (*world, *ownServer) {
	t.Helper()
	w := newWorld(t) // or it is skipped
	s, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	own := &ownServer{s, filepath.Join(t.TempDir(), "temporal.db")}
	t.Cleanup(func() { kill(own.process) })
	own.restart(w)
	w.address, w.heartbeat = s.address, 20*time.Second // no worker dies
	return w, own
}

func (s *ownServer) restart(w *world) {
	w.t.Helper()
	// A process that is killed loses nothing that it has written, so that the server need not wait for the disk.
	if err := s.start("--db-filename", s.file, "--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=off"); err != nil {
		w.t.Fatal(err)
	}
}

// stuckAfter is how long the server may do nothing.
const stuckAfter = time.Minute

// restartCampaign kills the server each time the ledger was asked for some more effects.
func restartCampaign(w *world, s *ownServer, restarts int) {
	t := w.t
	w.ledger.setDelay(100 * time.Millisecond)
	x := w.client()
	repeated := w.countRepeated(x)
	for range 2 {
		w.process()
	}
	stopped := w.operate(x)
	paid, asked := w.flow(x, paying), w.flow(x, asking)
	replies := w.sendAhead(2, 2, max(3, restarts/2))
	var all sync.WaitGroup
	var paidRuns []string
	var questions []*question
	begun, stuck := time.Now(), 0
	for n := range restarts {
		before := w.ledger.total()
		for i := range 3 {
			paidRuns = append(paidRuns, fmt.Sprintf("p%d-%d", n, i))
			q := &question{run: fmt.Sprintf("q%d-%d", n, i)}
			questions = append(questions, q)
			w.insistOnStart(x, paid, paidRuns[len(paidRuns)-1])
			w.insistOnStart(x, asked, q.run)
			for v := range 2 {
				all.Go(func() { w.insist(x, q, v) })
			}
		}
		// A server that is stuck is restarted too, as a person would do: one with a file may be, on a loaded machine.
		for end := time.Now().Add(stuckAfter); w.ledger.total() == before && time.Now().Before(end); {
			pause(t.Context(), 20*time.Millisecond)
		}
		if w.ledger.total() == before {
			stuck++
		}
		kill(s.process)
		id := fmt.Sprintf("down%d", n)
		paidRuns = append(paidRuns, id)
		all.Go(func() { w.insistOnStart(x, paid, id) })
		s.restart(w)
	}
	all.Wait()
	for _, id := range paidRuns {
		w.completed(x, id)
	}
	for _, q := range questions {
		w.checkAnswer(x, q)
	}
	w.checkCampaign(5*len(paidRuns)+len(questions), replies, repeated())
	stopped()
	t.Logf("%d restarts, %d of a server that did nothing, %d runs, %d rounds of sessions, %d questions with two answers each, %d effects, %s", restarts, stuck, len(paidRuns), len(replies), len(questions),
		w.ledger.total(), time.Since(begun).Round(time.Second))
}

// insistOnStart starts a run until it is recorded.
func (w *world) insistOnStart(x *weir.Weir, f *weir.Flow, id string) {
	w.insistUntil("run "+id+" is recorded", func() (bool, error) {
		_, err := x.Start(w.t.Context(), f, weir.Start{ID: id})
		if err != nil {
			_, missing := x.Inspect(w.t.Context(), id, 0)
			return missing == nil, err
		}
		return true, nil
	})
}

// question is one that two senders answer at the same time.
type question struct {
	run string

	mu           sync.Mutex
	acknowledged []int
}

// insist answers with a value until the answer is acknowledged, or the run has ended without.
func (w *world) insist(x *weir.Weir, q *question, value int) {
	w.insistUntil("question of "+q.run, func() (bool, error) {
		_, err := x.Answer(w.t.Context(), q.run, "ask:ask#1", value, "ann")
		if err == nil {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.acknowledged = append(q.acknowledged, value)
			return true, nil
		}
		return errors.Is(err, runner.ErrNoInterrupt) && w.ended(x, q.run), err
	})
}

// insistUntil repeats what fails while the server is away.
func (w *world) insistUntil(what string, try func() (done bool, err error)) {
	for end := time.Now().Add(patience); ; pause(w.t.Context(), 100*time.Millisecond) {
		done, err := try()
		if done {
			return
		}
		if time.Now().After(end) {
			w.t.Errorf("%s: not after %s: %v", what, patience, err)
			return
		}
	}
}

// checkAnswer requires that the answer in the journal is the one that was acknowledged, if one was.
func (w *world) checkAnswer(x *weir.Weir, q *question) {
	w.t.Helper()
	n, err := weir.Output[int](w.completed(x, q.run), "n")
	if err != nil || len(q.acknowledged) > 1 || len(q.acknowledged) == 1 && q.acknowledged[0] != n {
		w.t.Errorf("run %s has the answer %d, %v; acknowledged were %v", q.run, n, err, q.acknowledged)
	}
}

// completed waits until a run that any process started has completed.
func (w *world) completed(x *weir.Weir, run string) (r weir.Result) {
	w.t.Helper()
	w.until("run "+run+" has completed", func() bool {
		v, err := x.Inspect(w.t.Context(), run, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		r = v.Result()
		if r.Status.Ended() && r.Status != weir.Completed {
			w.t.Fatalf("run %s: %s, %v", run, r.Status, r.Error)
		}
		return r.Status == weir.Completed
	})
	return r
}
