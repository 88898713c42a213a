package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// maxPayload limits the events of a commit, in bytes. PostgreSQL takes at most 1 GB in a
// message.
const maxPayload = 512 << 20

// Append makes commits durable in one transaction, each as a whole or not at all; see
// store.Journal. If the connection is lost during the commit, it reads the rows again
// before it answers: neither is an acknowledged commit lost, nor one stored twice.
func (s *Store) Append(ctx context.Context, appends []store.Append) []error {
	errs := make([]error, len(appends))
	if len(appends) == 0 {
		return errs
	}
	fail := func(err error) []error {
		err = s.wrap("append", err)
		for i := range errs {
			s.forget(appends[i].Commit.Run)
			errs[i] = err
		}
		return errs
	}
	if err := s.check(ctx); err != nil {
		return fail(err)
	}
	if s.opts.ReadOnly {
		return fail(store.ErrReadOnly)
	}
	g := newGroup(s, appends)
	err := s.repeat(ctx, func(ctx context.Context) error { return g.try(ctx) })
	if err != nil {
		return fail(err)
	}
	for i := range appends {
		if refused := g.refused[i]; refused != nil {
			c := &appends[i].Commit
			s.forget(c.Run)
			errs[i] = fmt.Errorf("append commit %d (events from %d) of run %s under fence %d: %w",
				c.Seq, c.First, c.Run, appends[i].Fence, refused)
		}
	}
	return errs
}

// group is the commits of one call of Append.
type group struct {
	s        *Store
	appends  []store.Append
	order    []int // in which they are appended: that of the locks
	encoded  []encodedCommit
	refused  []error // of this attempt
	written  []writtenCommit
	sessions map[int64]*sessionRow // locked, by number
	restores bool                  // commits of an export, whose effects outside of the run are not repeated
}

// writtenCommit identifies a commit that a transaction has written.
type writtenCommit struct {
	run, seq int64
	tag      store.Tag
}

// encodedCommit is the payload of a commit, which is the same in each attempt.
type encodedCommit struct {
	payload  []byte
	messages []store.PayloadMessage
	err      error
}

func newGroup(s *Store, appends []store.Append) *group {
	g := &group{s: s, appends: appends, order: make([]int, len(appends)), encoded: make([]encodedCommit, len(appends))}
	for i := range appends {
		g.order[i] = i
		e := &g.encoded[i]
		e.payload, e.messages, e.err = store.LocatePayload(appends[i].Commit.Events)
		if e.err == nil && len(e.payload) > maxPayload {
			e.err = fmt.Errorf("the events take %d bytes, and a commit has at most %d; keep large contents in files", len(e.payload), maxPayload)
		}
	}
	slices.SortStableFunc(g.order, func(a, b int) int { return cmp.Compare(appends[a].Commit.Run, appends[b].Commit.Run) })
	return g
}

// try appends the group in one transaction. An error says that nothing was appended.
func (g *group) try(ctx context.Context) error {
	g.refused, g.written, g.sessions = make([]error, len(g.appends)), nil, map[int64]*sessionRow{}
	t, err := g.s.begin(ctx)
	if err != nil {
		return err
	}
	defer t.release()
	states, err := g.lock(t)
	if err != nil {
		return err
	}
	for _, i := range g.order {
		w := commitWriter{t: t, g: g, states: states, a: &g.appends[i], encoded: &g.encoded[i]}
		if g.refused[i], err = w.write(); err != nil {
			return err
		}
	}
	if err = t.commit(); errors.Is(err, errUnknownOutcome) {
		t.release() // settle needs a connection, and there may be no other
		err = g.settle(ctx, t.id, err)
	}
	if err == nil {
		g.s.remember(states)
		g.report()
	}
	return err
}

// report reports the runs that have new commits.
func (g *group) report() {
	for i := range g.appends {
		if g.refused[i] == nil {
			g.s.notices.report(store.TopicCommit, g.appends[i].Commit.Run)
		}
	}
}

// lock locks the sessions and the runs of the group, in the order of all transactions, and
// returns the states of the runs by id.
func (g *group) lock(t *tx) (map[string]*runState, error) {
	var ids, messages []string
	var values []*engine.UserStateWrite
	for i := range g.appends {
		a := &g.appends[i]
		if w := g.userStateWrite(a); w != nil {
			values = append(values, w)
		}
		if a.Start == nil {
			ids = append(ids, a.Commit.Run)
		} else if a.Start.Message != "" {
			messages = append(messages, a.Start.Message)
		}
		messages = append(messages, a.ConsumedMessages...)
	}
	if err := g.lockSessions(t, ids, messages); err != nil {
		return nil, err
	}
	states := make(map[string]*runState, len(g.appends))
	if len(ids) == 0 {
		t.lockUserStates(values)
		return states, nil
	}
	err := t.query(func(row pgx.Row) error {
		r := &runState{}
		if err := r.scan(row); err != nil {
			return err
		}
		states[r.id] = r
		return nil
	}, lockRuns, escapeTexts(ids))
	for _, r := range states {
		r.contexts = g.s.contextsOf(r)
	}
	t.lockUserStates(values)
	return states, err
}

// settle reads whether a group was committed whose connection was lost during the commit. A
// transaction that the server has not ended yet still has its locks, so that reading under
// a lock waits for its end. The error is nil if the group was committed, and
// errConnectionLost if it was not. The id is that of the transaction.
func (g *group) settle(ctx context.Context, id string, lost error) error {
	if len(g.written) == 0 {
		return nil // every commit was refused
	}
	w := g.written[0] // all are in one transaction
	// A run that the transaction makes cannot be locked: it is not visible before the end.
	return g.s.settleBy(ctx, id, lost, func(ctx context.Context) (bool, error) { return g.s.hasCommit(ctx, w) })
}

// hasCommit reports whether the database has a commit with its tag, after transactions that
// have locked its run have ended.
func (s *Store) hasCommit(ctx context.Context, w writtenCommit) (there bool, err error) {
	t, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	defer t.release()
	t.queue("SELECT 1 FROM run WHERE num = $1 FOR UPDATE", w.run)
	err = t.queryRow([]any{&there}, "SELECT EXISTS (SELECT 1 FROM run_commit WHERE run = $1 AND seq = $2 AND tag = $3)", w.run, w.seq, int32(w.tag))
	return there, err
}
