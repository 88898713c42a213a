package crash_test

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"syscall"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/crash"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/postgres"
)

// check stops the servers and compares what clients were told, what the ledger was asked and what the database has.
func (f *fleet) check(times int) {
	t := f.t
	t.Helper()
	if t.Failed() {
		t.FailNow()
	}
	s, err := postgres.Open(t.Context(), f.direct, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // only read
	f.until("all rounds have ended", func() bool {
		n, err := unfinished(f, s)
		return err == nil && n == 0
	})
	for _, cmd := range f.servers {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			t.Errorf("a server: %v", err)
		}
	}
	asks, repeated := 0, 0
	for _, o := range f.orders {
		n, again := f.checkRun(s, o.run, 3)
		asks, repeated = asks+n, repeated+again
		f.checkAnswer(s, o)
	}
	messages := 0
	for session, sent := range f.visits {
		n, again := f.checkSession(s, session, sent)
		asks, repeated, messages = asks+n, repeated+again, messages+len(sent)
	}
	verify := exec.CommandContext(t.Context(), f.binary, "verify", "--all", "--db", f.direct)
	verify.Env, verify.Dir = f.harness.env, f.harness.dir
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	t.Logf("%d times under %d servers: %d runs with two answers each, %d messages of sessions, %d requests of clients failed and were sent again, %d effects, %d asked for again without a result in the journal",
		times, len(f.servers), len(f.orders), messages, f.failed.Load(), asks-repeated, repeated)
}

// unfinished counts the runs that have not ended, up to 100.
func unfinished(f *fleet, s *postgres.Store) (n int, err error) {
	rows, err := s.Runs(f.t.Context(), store.Filter{Status: []engine.Status{engine.Pending, engine.Running, engine.Paused}})
	return len(rows), err
}

// checkRun requires that a run has completed with so many effects, and that none was asked for after its result was in the journal. It returns
// how often the ledger was asked, and how often again.
func (f *fleet) checkRun(s *postgres.Store, run string, effects int) (asked, again int) {
	f.t.Helper()
	row, err := s.Run(f.t.Context(), run)
	if err != nil || row.Head.Status != engine.Completed {
		f.t.Errorf("run %s is %s, %v", run, row.Head.Status, err)
		return 0, 0
	}
	done := make(map[string]int64) // the time of the commit, Unix milliseconds
	for c, err := range s.Commits(f.t.Context(), run, 0) {
		if err != nil {
			f.t.Error(err)
			return 0, 0
		}
		for _, e := range c.Events {
			e, ok := e.(*engine.EffectCompleted)
			if !ok {
				continue
			}
			if _, twice := done[run+"/"+e.Key]; twice {
				f.t.Errorf("%s of run %s has two results", e.Key, run)
			}
			done[run+"/"+e.Key] = c.At
		}
	}
	if len(done) != effects {
		f.t.Errorf("run %s has %d effects, want %d", run, len(done), effects)
	}
	asks, err := crash.ReadAsks(f.harness.asks, run)
	if err != nil {
		f.t.Error(err)
	}
	seen := make(map[string]bool)
	for _, a := range asks {
		at, ok := done[a.Key]
		if !ok || a.At/1000 > at {
			f.t.Errorf("%s was asked for at %d; its result is in the journal since %d", a.Key, a.At/1000, at)
		}
		seen[a.Key] = true
	}
	if len(seen) != effects {
		f.t.Errorf("run %s: the ledger was asked for %d effects, want %d", run, len(seen), effects)
	}
	return len(asks), len(asks) - len(seen)
}

// checkAnswer requires that one answer has won, and that no other was acknowledged.
func (f *fleet) checkAnswer(s *postgres.Store, o *order) {
	f.t.Helper()
	var answers []string
	for c, err := range s.Commits(f.t.Context(), o.run, 0) {
		if err != nil {
			f.t.Error(err)
			return
		}
		for _, e := range c.Events {
			if e, ok := e.(*engine.InterruptAnswered); ok {
				answers = append(answers, fmt.Sprint(e.Value))
			}
		}
	}
	if len(answers) != 1 || len(o.acknowledged) > 1 || len(o.acknowledged) == 1 && fmt.Sprint(o.acknowledged[0]) != answers[0] {
		f.t.Errorf("run %s has the answers %v; acknowledged were %v", o.run, answers, o.acknowledged)
	}
}

// checkSession requires a completed round for each message that was acknowledged, and no other.
func (f *fleet) checkSession(s *postgres.Store, session string, sent []string) (asked, again int) {
	f.t.Helper()
	rounds, err := s.Runs(f.t.Context(), store.Filter{Session: session, Limit: 1 << 20})
	if err != nil {
		f.t.Error(err)
	}
	var taken []string
	for i := range rounds {
		n, more := f.checkRun(s, rounds[i].ID, 1)
		asked, again = asked+n, again+more
		for c, err := range s.Commits(f.t.Context(), rounds[i].ID, 0) {
			if err != nil {
				f.t.Error(err)
				break
			}
			for _, e := range c.Events {
				if e, ok := e.(*engine.RunStarted); ok {
					v, _ := e.Inputs.Get("message")
					taken = append(taken, fmt.Sprint(v))
				}
			}
		}
	}
	slices.Sort(taken)
	slices.Sort(sent)
	if !slices.Equal(taken, sent) {
		f.t.Errorf("session %s: %d rounds have taken %d messages", session, len(taken), len(sent))
	}
	return asked, again
}
