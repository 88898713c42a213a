//go:build linux

package temporal_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/pgtest"
)

var (
	kills    = flag.Int("temporal.kills", 6, "how many workers the campaign kills")
	killBusy = flag.Bool("temporal.busy", false, "kill workers in the middle of an effect, and not at any time")
)

// TestWorkersAreKilledWhileRunsAreExecuted kills workers at random while runs, and rounds of sessions to which several
// processes send, are executed. A request to the outside ledger for an effect whose result is in the journal is a failure.
func TestWorkersAreKilledWhileRunsAreExecuted(t *testing.T) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if name == "PostgreSQL" {
				s := pgtest.Start(t)
				w.database = s.URL(s.Address(), "")
			}
			campaign(w, *kills)
		})
	}
}

// campaign keeps runs and rounds in progress until so many workers were killed.
func campaign(w *world, kills int) {
	const workers, atOnce = 3, 8
	t := w.t
	w.ledger.setDelay(100 * time.Millisecond)
	x := w.client()
	repeated := w.countRepeated(x)
	var running []*exec.Cmd
	for range workers {
		running = append(running, w.process())
	}
	stopped := w.operate(x)
	f := w.flow(x, paying)
	var runs, open []*weir.Run
	replies := w.sendAhead(2, 2, max(3, kills/4))
	begun := time.Now()
	for n := range kills {
		open = slices.DeleteFunc(open, func(r *weir.Run) bool { return w.ended(x, r.ID) })
		for len(open) < atOnce || len(runs) < n*2/5 {
			r := w.start(x, f, weir.Start{ID: fmt.Sprintf("%s-%d", w.queue[len(w.queue)-8:], len(runs))})
			runs, open = append(runs, r), append(open, r)
		}
		pause(t.Context(), time.Duration(300+rand.IntN(900))*time.Millisecond)
		i := rand.IntN(workers)
		if *killBusy {
			i = w.busyWorker(running)
		}
		kill(running[i])
		running[i] = w.process()
	}
	for _, r := range runs {
		w.wait(r, weir.Completed)
	}
	w.checkCampaign(5*len(runs), replies, repeated())
	resumed := stopped()
	asked := 0
	for _, n := range w.ledger.counts() {
		asked += n
	}
	t.Logf("%d kills, %d runs, %d rounds of sessions, %d effects, %d asked for again without a result in the journal, %d runs were set aside and resumed, %s", kills, len(runs), len(replies),
		w.ledger.total(), asked-w.ledger.total(), resumed, time.Since(begun).Round(time.Second))
}

// operate does what a person does during an outage: it resumes the runs that were set aside because several workers in a row were killed while they
// executed them. stop returns how many there were.
func (w *world) operate(x *weir.Weir) (stop func() int) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var done sync.WaitGroup
	resumed := 0
	done.Go(func() {
		for ; ctx.Err() == nil; pause(ctx, time.Second) {
			list, _ := x.StuckRuns(ctx, weir.StuckOptions{}) // Temporal may be away
			for i := range list {
				if list[i].Reason != weir.StuckPoisoned && !strings.Contains(list[i].Detail, "poisoned") {
					continue
				}
				if _, err := x.Resume(ctx, list[i].Run); err == nil {
					resumed++
				}
			}
		}
	})
	return func() int {
		cancel()
		done.Wait()
		return resumed
	}
}

// busyWorker returns the index of a worker that waits for the ledger, or of any worker if none does for ten seconds.
func (w *world) busyWorker(workers []*exec.Cmd) int {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); pause(w.t.Context(), 10*time.Millisecond) {
		if i := slices.IndexFunc(workers, func(c *exec.Cmd) bool { return w.ledger.busy(c.Process.Pid) > 0 }); i >= 0 {
			return i
		}
	}
	return rand.IntN(len(workers))
}

// ended reports whether a run has ended.
func (w *world) ended(x *weir.Weir, run string) bool {
	w.t.Helper()
	v, err := x.Inspect(w.t.Context(), run, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Result().Status.Ended()
}

// countRepeated counts requests to the ledger for effects that have a result in the journal, and returns how many there were.
func (w *world) countRepeated(x *weir.Weir) func() int {
	var n atomic.Int64
	w.ledger.setCheck(func(run, key string) {
		if w.journaledEffects(x, run)[key] {
			n.Add(1)
		}
	})
	return func() int { return int(n.Load()) }
}

// checkCampaign compares what the ledger and the store have at the end: the effects of runs, and one of each round.
func (w *world) checkCampaign(ofRuns int, replies []*weir.Reply, repeated int) {
	w.t.Helper()
	rounds := make(map[string]bool)
	for _, r := range replies {
		rounds[w.reply(r, weir.Completed).Run] = true
	}
	if len(rounds) != len(replies) {
		w.t.Errorf("%d rounds have taken %d messages", len(rounds), len(replies))
	}
	if repeated > 0 {
		w.t.Errorf("%d journaled effects were asked for again", repeated)
	}
	if n, want := w.ledger.total(), ofRuns+len(replies); n != want {
		w.t.Errorf("%d effects, want %d", n, want)
	}
	s, err := openStore(w.t.Context(), w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer closeStore(w.t, s)
	w.verify(s)
}

// sendAhead has processes send messages to sessions, all before the first is answered.
func (w *world) sendAhead(sessions, processes, messages int) (replies []*weir.Reply) {
	w.t.Helper()
	first := w.client()
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = w.session(first, counting, weir.SessionOptions{New: true}).ID
	}
	for range processes {
		x := w.client()
		for _, id := range ids {
			s := w.session(x, counting, weir.SessionOptions{ID: id})
			for range messages {
				r, err := s.Send(w.t.Context(), "hello", weir.SendOptions{})
				if err != nil {
					w.t.Fatal(err)
				}
				replies = append(replies, r)
			}
		}
	}
	return replies
}

// TestARunThatIsSetAsideIsResumed kills every worker that executes a run until the run is set aside. A person resumes it then.
func TestARunThatIsSetAsideIsResumed(t *testing.T) {
	w := newWorld(t)
	w.ledger.setDelay(patience)
	x := w.client()
	r := w.start(x, w.flow(x, paying), weir.Start{})
	stuck := func() bool {
		list, err := x.StuckRuns(t.Context(), weir.StuckOptions{})
		return err == nil && len(list) == 1 && list[0].Run == r.ID && list[0].Reason == weir.StuckPoisoned
	}
	for !stuck() {
		c := w.process()
		w.until("a worker executes the run, or it is set aside", func() bool { return w.ledger.busy(c.Process.Pid) > 0 || stuck() })
		kill(c)
	}
	w.ledger.setDelay(0)
	w.process()
	if _, err := x.Resume(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	w.wait(r, weir.Completed)
}
