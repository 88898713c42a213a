//go:build linux

package temporal_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/pgtest"
)

var kills = flag.Int("temporal.kills", 6, "how many workers the campaign kills")

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

func campaign(w *world, kills int) {
	const workers = 3
	t := w.t
	w.ledger.setDelay(100 * time.Millisecond)
	x := w.client()
	var mu sync.Mutex
	repeated := 0
	w.ledger.setCheck(func(run, key string) {
		if w.journaledEffects(x, run)[key] {
			mu.Lock()
			defer mu.Unlock()
			repeated++
		}
	})
	var running []*exec.Cmd
	for range workers {
		running = append(running, w.process())
	}
	f := w.flow(x, paying)
	runs := make(map[string]*weir.Run)
	for i := range max(6, kills/2) {
		id := fmt.Sprintf("%s-%d", w.queue[len(w.queue)-8:], i)
		runs[id] = w.start(x, f, weir.Start{ID: id})
	}
	replies := w.sendAhead(2, 2, max(3, kills/4))
	begun := time.Now()
	for range kills {
		pause(t.Context(), time.Duration(300+rand.IntN(900))*time.Millisecond)
		i := rand.IntN(workers)
		kill(running[i])
		running[i] = w.process()
	}
	for _, r := range runs {
		w.wait(r, weir.Completed)
	}
	rounds := make(map[string]bool)
	for _, r := range replies {
		rounds[w.reply(r, weir.Completed).Run] = true
	}
	if len(rounds) != len(replies) {
		t.Errorf("%d rounds have taken %d messages", len(rounds), len(replies))
	}
	mu.Lock()
	defer mu.Unlock()
	if repeated > 0 {
		t.Errorf("%d journaled effects were asked for again", repeated)
	}
	if n, want := w.ledger.total(), 5*len(runs)+len(replies); n != want {
		t.Errorf("%d effects, want %d", n, want)
	}
	asked := 0
	for _, n := range w.ledger.counts() {
		asked += n
	}
	s, err := openStore(t.Context(), w.database)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	w.verify(s)
	t.Logf("%d kills, %d runs, %d rounds of sessions, %d effects, %d asked for again without a result in the journal, %s", kills, len(runs), len(rounds), w.ledger.total(), asked-w.ledger.total(), time.Since(begun).Round(time.Second))
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
