package postgres

import (
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// runState is what a transaction reads of a run that it has locked.
type runState struct {
	id, user              string
	num                   int64
	secret                []byte
	owner                 string
	fence                 int64
	commits, events       int64
	tag                   int32
	base                  sharedBase
	session, round, first int64
	crashes               int
	head                  headRow
	contexts              map[string]contextState // nil until it is changed or read
}

// contextState is a context of a run: its row, the context under which its messages are
// rows, and the position of the next one.
type contextState struct {
	row, messages, next int64
}

const runColumns = `r.id, r.num, r.secret, r.owner, r.fence, r.commits, r.events, r.tag, coalesce(r.base, 0), r.base_seq, r.base_last,
	coalesce(r.session, 0), r.round, r.first, r.crashes, r.status, r.activity, r.due, r.waiting, r.usage, r.failure, r.user_id`

// lockRuns locks the runs with the ids $1, in the order of their ids.
const lockRuns = "SELECT " + runColumns + ` FROM run r WHERE r.id = ANY($1) ORDER BY r.id FOR UPDATE`

func (r *runState) scan(row pgx.Row) error {
	return row.Scan(into(&r.id), &r.num, &r.secret, into(&r.owner), &r.fence, &r.commits, &r.events, &r.tag,
		&r.base.run, &r.base.seq, &r.base.last, &r.session, &r.round, &r.first, &r.crashes,
		&r.head.status, &r.head.activity, &r.head.due, &r.head.waiting, &r.head.usage, &r.head.failure, into(&r.user))
}

// maxRuns is the number of runs whose contexts a process remembers.
const maxRuns = 4096

// contextsOf returns the contexts of a locked run if this process made its last commit.
func (s *Store) contextsOf(r *runState) map[string]contextState {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.runs[r.id]
	if old == nil || old.num != r.num || old.commits != r.commits {
		return map[string]contextState{}
	}
	return maps.Clone(old.contexts)
}

// remember keeps the states of runs after a commit.
func (s *Store) remember(states map[string]*runState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range states {
		if old := s.runs[id]; old != nil && old.num == r.num && old.commits > r.commits {
			continue // another goroutine has committed since
		}
		if engineStatus, err := parseStatus(r.head.status); err == nil && engineStatus.Ended() {
			delete(s.runs, id)
			continue
		}
		if len(s.runs) >= maxRuns {
			clear(s.runs)
		}
		s.runs[id] = r
	}
}

// forget drops what is remembered of a run.
func (s *Store) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, id)
}

// chainTag returns the tag of a commit that follows the last one.
func (r *runState) chainTag(a *store.Append, payload []byte) store.Tag {
	c := &a.Commit
	return store.Tag(r.tag).Next(store.HeaderOf(c), store.CommitDigest(r.secret, r.id, c.Seq, payload))
}

// refusal returns why a commit does not follow what is there, nil if it does.
func (r *runState) refusal(a *store.Append) error {
	before := a.Fence // that of the run
	if a.Acquire != nil {
		before--
	}
	switch c := &a.Commit; {
	case a.Fence <= 0, before != r.fence, a.Acquire != nil && r.owner != "":
		return store.ErrFenced
	case c.Seq != r.commits+1 || c.First != r.events+1:
		return store.ErrSequence
	}
	return nil
}

// isExecuting reports whether nodes of the run were active at its last commit.
func (r *runState) isExecuting() bool {
	return r.head.status == engine.Running.String() && r.head.activity == int16(engine.Executing)
}
