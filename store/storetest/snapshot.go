package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func snapshotCases() []testCase {
	return []testCase{
		{"every read of a session is of one moment", func(t *testing.T, s Store) { snapshotOfRounds(t, s, s) }},
		{"every read of a session is of one moment, also from another process", func(t *testing.T, s Store) {
			if s.subject.OpenSecond == nil {
				t.Skip("Subject.OpenSecond: the store is of one process")
			}
			snapshotOfRounds(t, s, s.openSecond(t))
		}},
	}
}

// snapshot is the durable state of a writer, with which readers compare their results.
type snapshot struct {
	message, run atomic.Pointer[string] // the newest message that was sent, and started
	rounds       atomic.Int64
	length       atomic.Int64
}

// snapshotOfRounds: rounds start and end while all reads are repeated. No read may mix the states before and after a
// commit.
func snapshotOfRounds(t *testing.T, s, from Store) {
	const rounds = 24
	must(t, s.CreateSession(t.Context(), store.NewSession{ID: "s", User: "u", Flow: "f", Now: startTime()}))
	var m snapshot
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for name, read := range snapshotReads(from, &m) {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := read(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	defer readers.Wait()
	defer stop()
	for i := range rounds {
		m.runRound(t, s, i)
	}
}

// runRound sends a message, starts its round and ends it.
func (m *snapshot) runRound(t *testing.T, s Store, i int) {
	id := fmt.Sprintf("m%d", i)
	_, err := s.Enqueue(t.Context(), store.QueuedMessage{ID: id, Session: "s", Value: "hello", By: "u", At: startTime()})
	must(t, err)
	m.message.Store(&id)
	x := session(t, s, "s")
	w := roundWriterOf(s, x, id, id)
	w.append(t, &engine.RunStarted{Parallel: 1, Session: "s", Round: i + 1, Contexts: []engine.ContextChange{
		{ID: "main", Create: true, Session: "s", At: x.Length, Body: &convo.Change{Create: true}},
	}})
	m.run.Store(&id)
	m.rounds.Store(int64(x.Rounds + 1))
	w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{messageChange("main", id+"/said", "a text that is long enough to be shared")}})
	m.length.Store(int64(x.Length + 1))
	a := w.next(&engine.RunCompleted{})
	a.Head.Status = engine.Completed
	must(t, s.Append(t.Context(), []store.Append{a})[0])
}

// snapshotReads returns the reads of a session, each with the check of its result.
func snapshotReads(s Store, m *snapshot) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"RoundMessage":         func(ctx context.Context) error { return m.roundMessage(ctx, s) },
		"FindQueued":           func(ctx context.Context) error { return m.findQueued(ctx, s) },
		"Session":              func(ctx context.Context) error { return m.session(ctx, s) },
		"NextQueued":           func(ctx context.Context) error { return m.nextQueued(ctx, s) },
		"Queue":                func(ctx context.Context) error { return m.queue(ctx, s) },
		"SessionMessages":      func(ctx context.Context) error { return m.messages(ctx, s) },
		"Runs":                 func(ctx context.Context) error { return m.listed(ctx, s) },
		"Commits and Messages": func(ctx context.Context) error { return m.commits(ctx, s) },
	}
}

func (m *snapshot) roundMessage(ctx context.Context, s Store) error {
	run := m.run.Load()
	if run == nil {
		return nil
	}
	q, err := s.RoundMessage(ctx, *run)
	return expectRead(err, q.ID == *run && q.TakenBy == *run && q.Session == "s", q)
}

func (m *snapshot) findQueued(ctx context.Context, s Store) error {
	id := m.message.Load()
	if id == nil {
		return nil
	}
	q, err := s.FindQueued(ctx, *id)
	return expectRead(err, q.ID == *id && (q.TakenBy != "" || q.Value != nil), q)
}

func (m *snapshot) session(ctx context.Context, s Store) error {
	rounds, length := m.rounds.Load(), m.length.Load()
	x, err := s.Session(ctx, "s")
	idle := x.Holder == "" || x.Queued == 0
	return expectRead(err, idle && int64(x.Rounds) >= rounds && int64(x.Length) >= length && x.Length <= x.Rounds, x)
}

func (*snapshot) nextQueued(ctx context.Context, s Store) error {
	q, err := s.NextQueued(ctx, "s")
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return expectRead(err, q.TakenBy == "" && q.Value != nil, q)
}

func (*snapshot) queue(ctx context.Context, s Store) error {
	list, err := s.Queue(ctx, "s")
	return expectRead(err, len(list) == 0 || len(list) == 1 && list[0].TakenBy == "" && list[0].Value != nil, list)
}

func (m *snapshot) messages(ctx context.Context, s Store) error {
	length := m.length.Load()
	list, err := s.SessionMessages(ctx, "s", 0, 1<<20)
	if err := expectRead(err, int64(len(list)) >= length, len(list)); err != nil {
		return err
	}
	for i := range list {
		if list[i].Position != i || list[i].Message.ID != list[i].Run+"/said" {
			return fmt.Errorf("message %d: %+v", i, list[i])
		}
	}
	return nil
}

func (m *snapshot) listed(ctx context.Context, s Store) error {
	rounds := m.rounds.Load()
	list, err := s.Runs(ctx, store.Filter{Session: "s", Limit: 1000})
	return expectRead(err, int64(len(list)) >= rounds, len(list))
}

// commits reads a run, which also reads the history before it.
func (m *snapshot) commits(ctx context.Context, s Store) error {
	run := m.run.Load()
	if run == nil {
		return nil
	}
	seq := int64(0)
	for c, err := range s.Commits(ctx, *run, 0) {
		if seq++; err != nil || c.Seq != seq {
			return expectRead(err, false, c)
		}
	}
	list, err := s.Messages(ctx, *run, "main", 0, 1<<20)
	return expectRead(err, seq < 2 || len(list) >= 1, len(list))
}

func expectRead(err error, holds bool, got any) error {
	if err == nil && !holds {
		err = fmt.Errorf("got %+v", got)
	}
	return err
}
