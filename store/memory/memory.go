// Package memory keeps runs in the memory of the process: for tests, for
// embedding, and for flows whose record nobody needs once they are done. It
// keeps events as they are and encodes nothing; what is handed over must not
// be changed afterwards, and neither must what is handed back.
//
// It must not know files or encodings. It behaves as store/sqlite does;
// store/storetest says how.
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

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Store is a store in memory. It is safe for concurrent use.
type Store struct {
	closed atomic.Bool

	mu    sync.RWMutex // guards what follows
	runs  map[string]*run
	order []*run // by creation
	flows map[string][]byte
	cache map[string]cached

	posts  sync.Mutex // guards what follows
	lastID int64
	inbox  []store.Post
}

type cached struct {
	value   engine.Value
	expires time.Time
}

// run is one run; mu guards all but number and the fields of row that never
// change.
type run struct {
	number int // place in order

	mu         sync.Mutex
	row        store.Run
	fence      int64
	commits    []engine.Commit
	checkpoint *store.Checkpoint
	contexts   contexts
}

// New makes an empty store.
func New() *Store {
	return &Store{runs: map[string]*run{}, flows: map[string][]byte{}, cache: map[string]cached{}}
}

// Close makes every later call fail with store.ErrClosed and forgets nothing
// that callers still hold.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

func (s *Store) open(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

func (s *Store) run(ctx context.Context, id string) (*run, error) {
	if err := s.open(ctx); err != nil {
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

// Create makes a run without commits; store.ErrExists where the id is taken.
func (s *Store) Create(ctx context.Context, n store.NewRun) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	r := &run{row: store.Run{
		ID: n.ID, Flow: n.Flow, Fingerprint: n.Fingerprint, User: n.User, Parent: n.Parent,
		Origin: n.Origin, Created: n.At, Updated: n.At,
	}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[n.ID] != nil {
		return fmt.Errorf("create run %s: %w", n.ID, store.ErrExists)
	}
	r.number = len(s.order)
	s.runs[n.ID] = r
	s.order = append(s.order, r)
	return nil
}

// Append keeps commits, each or not at all; the result has one element for
// each of them: nil, store.ErrFenced, store.ErrSequence or store.ErrNotFound.
func (s *Store) Append(ctx context.Context, appends []store.Append) []error {
	errs := make([]error, len(appends))
	for i := range appends {
		a := &appends[i]
		r, err := s.run(ctx, a.Commit.Run)
		if err == nil {
			err = r.append(a)
		}
		errs[i] = err
	}
	return errs
}

func (r *run) append(a *store.Append) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &a.Commit
	if a.Fence != r.fence || a.Fence == 0 {
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
	return nil
}

// Commits iterates over a run's commits after a sequence number, as they were
// appended; those appended meanwhile may or may not come.
func (s *Store) Commits(ctx context.Context, id string, afterSeq int64) iter.Seq2[engine.Commit, error] {
	return func(yield func(engine.Commit, error) bool) {
		r, err := s.run(ctx, id)
		if err != nil {
			yield(engine.Commit{}, err)
			return
		}
		r.mu.Lock()
		commits := r.commits
		r.mu.Unlock()
		for _, c := range commits[min(max(afterSeq, 0), int64(len(commits))):] {
			if err := s.open(ctx); err != nil {
				yield(engine.Commit{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Run returns a run as listings show it; store.ErrNotFound where there is none.
func (s *Store) Run(ctx context.Context, id string) (store.Run, error) {
	r, err := s.run(ctx, id)
	if err != nil {
		return store.Run{}, err
	}
	return r.copy(), nil
}

func (r *run) copy() store.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row
	if row.Head.Waiting == nil {
		row.Head.Waiting = []engine.Interrupt{}
	}
	return row
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	if err := s.open(ctx); err != nil {
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
		order = order[:r.number]
	}
	out := []store.Run{}
	for _, r := range slices.Backward(order) {
		if len(out) == cmp.Or(f.Limit, 100) {
			break
		}
		if row := r.copy(); matches(&row, f) {
			out = append(out, row)
		}
	}
	return out, nil
}

func matches(r *store.Run, f store.Filter) bool {
	return (f.Flow == "" || f.Flow == r.Flow) &&
		(f.User == "" || f.User == r.User) &&
		(f.Parent == "" || f.Parent == r.Parent) &&
		(len(f.Status) == 0 || slices.Contains(f.Status, r.Head.Status))
}

// Find lists the ids of at most 100 runs that begin with prefix, in
// alphabetical order.
func (s *Store) Find(ctx context.Context, prefix string) ([]string, error) {
	if err := s.open(ctx); err != nil {
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
