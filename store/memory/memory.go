// Package memory is a store in the memory of the process: for tests, for embedding,
// and for flows whose record is not needed afterwards. It keeps events as they are and
// encodes nothing. Neither the events that it is given nor those that it returns may
// be changed afterwards.
//
// It must not know files or encodings. It behaves like store/sqlite; store/storetest
// checks both.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory/tables"
)

// Store is a store in memory. It is safe for concurrent use.
type Store struct {
	closed atomic.Bool
	now    func() time.Time                        // nil means time.Now
	tokens atomic.Pointer[func(convo.Message) int] // counts tokens; nil for no counts

	mu    sync.RWMutex // guards the following fields
	runs  map[string]*run
	order []*run // by creation
	flows map[string][]byte
	cache map[string]cacheEntry

	inboxMu sync.Mutex // guards the following fields
	lastID  int64
	inbox   []store.Post

	sessions     sessions
	trajectories *tables.Memory

	memories  memories
	access    access
	documents documents
	users     userStates // its mutex is taken before all others
}

type cacheEntry struct {
	value   engine.Value
	expires time.Time
}

// run is one run; mu guards all fields but number and the fields of row that never change.
type run struct {
	number  int                  // grows with each run
	base    *run                 // of row.Base
	first   int                  // position of its first message in the history of its session
	message *store.QueuedMessage // the message that started it as a round; guarded by the mutex of the sessions

	mu         sync.Mutex
	row        store.Run
	fence      int64
	commits    []engine.Commit
	checkpoint *store.Checkpoint
	contexts   contexts
}

// New creates an empty store.
func New() *Store {
	return &Store{
		runs: map[string]*run{}, flows: map[string][]byte{}, cache: map[string]cacheEntry{},
		trajectories: tables.NewMemory(),
		sessions:     sessions{byID: map[string]*session{}, messages: map[string]*store.QueuedMessage{}},
	}
}

// NewWithClock creates an empty store with a clock for leases and timers.
func NewWithClock(now func() time.Time) *Store {
	s := New()
	s.now = now
	return s
}

func (s *Store) clock() time.Time {
	if s.now == nil {
		return time.Now()
	}
	return s.now()
}

// Close makes later calls fail with store.ErrClosed. Data that callers hold remains valid.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

// CountTokens implements store.Capabilities.CountTokens; messages are counted when they are read.
func (s *Store) CountTokens(count func(convo.Message) int) { s.tokens.Store(&count) }

func (s *Store) checkOpen(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

func (s *Store) run(ctx context.Context, id string) (*run, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	r := s.runs[id]
	s.mu.RUnlock()
	if r == nil {
		return nil, fmt.Errorf("run %s: %w", id, store.ErrNotFound)
	}
	return r, nil
}

// Create implements store.Journal.
func (s *Store) Create(ctx context.Context, n store.NewRun) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	r, err := s.newRunWithBase(ctx, n)
	if err != nil {
		return err
	}
	return s.add(r)
}

// newRunWithBase makes a run that is not in the store yet.
func (s *Store) newRunWithBase(ctx context.Context, n store.NewRun) (*run, error) {
	r := newRun(n)
	if n.Base == nil {
		return r, nil
	}
	b, err := s.run(ctx, n.Base.Run)
	if err != nil {
		return nil, fmt.Errorf("create run %s: base: %w", n.ID, err)
	}
	if err := r.setBase(b, *n.Base); err != nil {
		return nil, fmt.Errorf("create run %s: %w", n.ID, err)
	}
	return r, nil
}

// appendFirst makes a run with its first commit. No caller sees the run before it has the
// commit.
func (s *Store) appendFirst(ctx context.Context, a *store.Append) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	if a.Start.Message != "" {
		return s.appendFirstOfRound(ctx, a)
	}
	r, err := s.newRunWithBase(ctx, a.Start.NewRun)
	if err == nil {
		err = s.checkSources(ctx, r, &a.Commit)
	}
	if err == nil {
		err = r.append(a, s.clock())
	}
	if err != nil {
		return err
	}
	return s.add(r)
}

func newRun(n store.NewRun) *run {
	return &run{row: store.Run{
		ID: n.ID, Flow: n.Flow, Fingerprint: n.Fingerprint, User: n.User, Parent: n.Parent,
		Origin: n.Origin, Created: n.At, Updated: n.At,
	}}
}

// setBase bases a new run on another.
func (r *run) setBase(base *run, b store.Base) error {
	r.base, r.row.Base = base, &b
	if b.Seq == 0 {
		return nil
	}
	last, ok := base.commit(b.Seq)
	if !ok {
		return fmt.Errorf("commit %d of base %s: %w", b.Seq, b.Run, store.ErrNotFound)
	}
	r.row.Commits, r.row.Events = b.Seq, last.First+int64(len(last.Events))-1
	return nil
}

// commit returns a commit by its number.
func (r *run) commit(seq int64) (engine.Commit, bool) {
	for r.row.Base != nil && seq <= r.row.Base.Seq {
		r = r.base
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := seq - r.shared() - 1
	if i < 0 || i >= int64(len(r.commits)) {
		return engine.Commit{}, false
	}
	return r.commits[i], true
}

// shared returns the number of the run's commits that are its base's.
func (r *run) shared() int64 {
	if r.row.Base == nil {
		return 0
	}
	return r.row.Base.Seq
}

func (s *Store) add(r *run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[r.row.ID] != nil {
		return fmt.Errorf("create run %s: %w", r.row.ID, store.ErrExists)
	}
	if last := len(s.order); last > 0 {
		r.number = s.order[last-1].number + 1
	}
	s.runs[r.row.ID] = r
	s.order = append(s.order, r)
	return nil
}

// Append implements store.Journal.
func (s *Store) Append(ctx context.Context, appends []store.Append) []error {
	errs := make([]error, len(appends))
	for i := range appends {
		a := &appends[i]
		if s.documents.wanted.Load() > 0 {
			before := s.headOf(a.Commit.Run)
			defer func() {
				if errs[i] == nil {
					s.notify(a, &before)
				}
			}()
		}
		if a.Start != nil {
			errs[i] = s.appendUserState(a, func() error { return s.appendFirst(ctx, a) })
			continue
		}
		r, err := s.run(ctx, a.Commit.Run)
		if err == nil {
			err = s.checkSources(ctx, r, &a.Commit)
		}
		if err == nil {
			err = s.appendUserState(a, func() error {
				if r.row.Session != "" || len(a.ConsumedMessages) > 0 {
					return s.appendOfSession(r, a)
				}
				return r.append(a, s.clock())
			})
		}
		if err == nil {
			s.removePosts(a.ConsumedPosts)
		}
		errs[i] = err
	}
	return errs
}

func (r *run) append(a *store.Append, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &a.Commit
	before := a.Fence
	if a.Acquire != nil {
		before--
	}
	if before != r.fence || a.Fence <= 0 || a.Acquire != nil && r.row.Owner != "" {
		return fmt.Errorf("append commit %d of run %s under fence %d: %w", c.Seq, c.Run, a.Fence, store.ErrFenced)
	}
	if c.Seq != r.row.Commits+1 || c.First != r.row.Events+1 {
		return fmt.Errorf("append commit %d of run %s (event %d after %d): %w", c.Seq, c.Run, c.First, r.row.Events, store.ErrSequence)
	}
	r.commits = append(r.commits, *c)
	r.row.Commits++
	r.row.Events += int64(len(c.Events))
	r.row.Updated = time.UnixMilli(c.At)
	r.row.Head = a.Head
	if !a.AnnouncesOnly {
		r.row.Crashes = 0
	}
	if a.Acquire != nil {
		r.fence, r.row.Owner, r.row.Until = a.Fence, a.Acquire.Owner, now.Add(a.Acquire.TTL)
	}
	if a.Release {
		r.release()
	}
	return nil
}

// Commits implements store.Journal.
func (s *Store) Commits(ctx context.Context, id string, afterSeq int64) iter.Seq2[engine.Commit, error] {
	return func(yield func(engine.Commit, error) bool) {
		r, err := s.run(ctx, id)
		if err != nil {
			yield(engine.Commit{}, err)
			return
		}
		for c := range r.all(max(afterSeq, 0)) {
			if err := s.checkOpen(ctx); err != nil {
				yield(engine.Commit{}, err)
				return
			}
			c.Run = id
			if !yield(c, nil) {
				return
			}
		}
	}
}

// all iterates over the commits after a number, those of bases first.
func (r *run) all(after int64) iter.Seq[engine.Commit] {
	return func(yield func(engine.Commit) bool) {
		levels := []*run{r}
		upto := []int64{maxNumber}
		for r.base != nil {
			levels, upto = append(levels, r.base), append(upto, min(upto[len(upto)-1], r.row.Base.Seq))
			r = r.base
		}
		for i, l := range slices.Backward(levels) {
			l.mu.Lock()
			commits := l.commits
			l.mu.Unlock()
			for _, c := range commits[min(max(after-l.shared(), 0), int64(len(commits))):] {
				if c.Seq > upto[i] {
					break
				}
				if !yield(c) {
					return
				}
			}
		}
	}
}

// Run implements store.Journal.
func (s *Store) Run(ctx context.Context, id string) (store.Run, error) {
	r, err := s.run(ctx, id)
	if err != nil {
		return store.Run{}, err
	}
	row := r.copy()
	s.markExpired(&row)
	return row, nil
}

// markExpired sets whether the lease of the owner has expired.
func (s *Store) markExpired(row *store.Run) {
	row.Expired = row.Owner != "" && !row.Until.After(s.clock())
}

func (r *run) copy() store.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row
	row.Fence = r.fence
	if row.Head.Waiting == nil {
		row.Head.Waiting = []engine.Interrupt{}
	}
	return row
}

// Runs implements store.Listings.
func (s *Store) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	order := s.order
	s.mu.RUnlock()
	if f.Before != "" {
		r, err := s.run(ctx, f.Before)
		if err != nil {
			return nil, fmt.Errorf("list runs before: %w", err)
		}
		n, _ := slices.BinarySearchFunc(order, r.number, func(o *run, n int) int { return cmp.Compare(o.number, n) })
		order = order[:n]
	}
	out := []store.Run{}
	for _, r := range slices.Backward(order) {
		if len(out) == cmp.Or(f.Limit, 100) {
			break
		}
		if row := r.copy(); matches(&row, f) {
			s.markExpired(&row)
			out = append(out, row)
		}
	}
	return out, nil
}

func matches(r *store.Run, f store.Filter) bool {
	return (f.Flow == "" || f.Flow == r.Flow) &&
		(f.User == "" || f.User == r.User) &&
		(f.Parent == "" || f.Parent == r.Parent) &&
		(f.Session == "" || f.Session == r.Session) &&
		(!f.Roots || r.Parent == "") &&
		(len(f.Status) == 0 || slices.Contains(f.Status, r.Head.Status))
}

// FindRunIDs implements store.Listings.
func (s *Store) FindRunIDs(ctx context.Context, prefix string) ([]string, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids := []string{}
	for _, r := range s.order {
		if strings.HasPrefix(r.row.ID, prefix) {
			ids = append(ids, r.row.ID)
		}
	}
	slices.Sort(ids)
	return ids[:min(len(ids), 100)], nil
}
