package proof

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// mapStore is a store as somebody writes it who has read docs/store.md: maps under one
// mutex, and the journal tier alone.
type mapStore struct {
	now func() time.Time

	mu     sync.Mutex // guards what follows
	closed bool
	runs   map[string]*mapRun
	order  []*mapRun // by creation
	flows  map[string][]byte
	inbox  []store.Post
	posts  int64 // the last ID
}

type mapRun struct {
	row     store.Run
	commits []engine.Commit // without those of the base
}

var _ store.Store = (*mapStore)(nil)

func newMapStore(now func() time.Time) *mapStore {
	return &mapStore{now: now, runs: map[string]*mapRun{}, flows: map[string][]byte{}}
}

// Capabilities implements store.Store.
func (s *mapStore) Capabilities() store.Capabilities { return store.Capabilities{} }

// Close implements store.Store.
func (s *mapStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// lock takes the mutex, unless the store is closed or the context has ended.
func (s *mapStore) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return store.ErrClosed
	}
	return nil
}

// find returns a run. The caller holds the mutex.
func (s *mapStore) find(id string) (*mapRun, error) {
	if r := s.runs[id]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("run %s: %w", id, store.ErrNotFound)
}

// Create implements store.Journal.
func (s *mapStore) Create(ctx context.Context, n store.NewRun) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.create(n)
}

func (s *mapStore) create(n store.NewRun) error {
	if s.runs[n.ID] != nil {
		return fmt.Errorf("run %s: %w", n.ID, store.ErrExists)
	}
	r := &mapRun{row: store.Run{
		ID: n.ID, Flow: n.Flow, Fingerprint: n.Fingerprint, User: n.User, Parent: n.Parent, Origin: n.Origin,
		Created: n.At, Updated: n.At, Base: n.Base,
	}}
	if n.Base != nil {
		if _, err := s.find(n.Base.Run); err != nil {
			return err
		}
		shared := s.commitsOf(n.ID, n.Base)
		if int64(len(shared)) != n.Base.Seq {
			return fmt.Errorf("commit %d of run %s: %w", n.Base.Seq, n.Base.Run, store.ErrNotFound)
		}
		if len(shared) > 0 {
			last := shared[len(shared)-1]
			r.row.Commits, r.row.Events = last.Seq, last.First+int64(len(last.Events))-1
		}
	}
	s.runs[n.ID], s.order = r, append(s.order, r)
	return nil
}

// commitsOf returns the commits that a base shares with a run. The caller holds the mutex.
func (s *mapStore) commitsOf(id string, b *store.Base) []engine.Commit {
	if b == nil {
		return nil
	}
	r := s.runs[b.Run]
	all := append(s.commitsOf(id, r.row.Base), r.commits...)
	all = all[:min(max(b.Seq, 0), int64(len(all)))]
	for i := range all {
		all[i].Run = id
	}
	return slices.Clip(all)
}

// journal returns the commits of a run. The caller holds the mutex.
func (s *mapStore) journal(r *mapRun) []engine.Commit {
	return append(s.commitsOf(r.row.ID, r.row.Base), r.commits...)
}

// Append implements store.Journal.
func (s *mapStore) Append(ctx context.Context, as []store.Append) []error {
	errs := make([]error, len(as))
	if err := s.lock(ctx); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	defer s.mu.Unlock()
	for i := range as {
		errs[i] = s.appendOrStart(&as[i])
	}
	return errs
}

// appendOrStart makes the run first where the commit does.
func (s *mapStore) appendOrStart(a *store.Append) error {
	if a.Start == nil {
		return s.append(a)
	}
	if a.Start.Message != "" {
		return &store.Unsupported{Capability: "sessions"}
	}
	err := s.create(a.Start.NewRun)
	if err != nil {
		return err
	}
	if err = s.append(a); err != nil {
		delete(s.runs, a.Start.ID)
		s.order = s.order[:len(s.order)-1]
	}
	return err
}

func (s *mapStore) append(a *store.Append) error {
	c := &a.Commit
	r, err := s.find(c.Run)
	if err != nil {
		return err
	}
	fence := a.Fence
	if a.Acquire != nil {
		fence--
	}
	switch {
	case a.Fence <= 0 || fence != r.row.Fence, a.Acquire != nil && r.row.Owner != "":
		return fmt.Errorf("run %s: %w", c.Run, store.ErrFenced)
	case c.Seq != r.row.Commits+1 || c.First != r.row.Events+1:
		return fmt.Errorf("commit %d of run %s: %w", c.Seq, c.Run, store.ErrSequence)
	}
	for _, e := range c.Events {
		for _, ch := range engine.ContextChanges(e) {
			if ch.Session != "" {
				return &store.Unsupported{Capability: "sessions"}
			}
			if err := s.checkLink(&ch); err != nil {
				return err
			}
		}
	}
	r.commits = append(r.commits, *c)
	r.row.Commits++
	r.row.Events += int64(len(c.Events))
	r.row.Head, r.row.Updated = a.Head, time.UnixMilli(c.At)
	if !a.AnnouncesOnly {
		r.row.Crashes = 0
	}
	if a.Acquire != nil {
		r.row.Fence, r.row.Owner, r.row.Until = a.Fence, a.Acquire.Owner, s.now().Add(a.Acquire.TTL)
	}
	if a.Release {
		r.release()
	}
	s.removePosts(a.ConsumedPosts)
	return nil
}

// checkLink refuses a context that continues more messages of another run than there are.
func (s *mapStore) checkLink(ch *engine.ContextChange) error {
	if ch.Run == "" || ch.At == 0 {
		return nil
	}
	r, err := s.find(ch.Run)
	if err == nil {
		var said []convo.Message
		if _, said, err = s.context(r, ch.Parent, true); err == nil && len(said) < ch.At {
			err = store.ErrNotFound
		}
	}
	if err != nil {
		return fmt.Errorf("context %s: %w", ch.ID, err)
	}
	return nil
}

// Commits implements store.Journal.
func (s *mapStore) Commits(ctx context.Context, run string, afterSeq int64) iter.Seq2[engine.Commit, error] {
	return func(yield func(engine.Commit, error) bool) {
		err := s.lock(ctx)
		if err != nil {
			yield(engine.Commit{}, err)
			return
		}
		var list []engine.Commit
		r, err := s.find(run)
		if err == nil {
			list = s.journal(r)
		}
		s.mu.Unlock()
		if err != nil {
			yield(engine.Commit{}, err)
			return
		}
		for _, c := range list[min(max(afterSeq, 0), int64(len(list))):] {
			if err := ctx.Err(); err != nil {
				yield(engine.Commit{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Run implements store.Journal.
func (s *mapStore) Run(ctx context.Context, id string) (store.Run, error) {
	if err := s.lock(ctx); err != nil {
		return store.Run{}, err
	}
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return store.Run{}, err
	}
	return s.rowOf(r), nil
}

// rowOf returns the row as callers see it. The caller holds the mutex.
func (s *mapStore) rowOf(r *mapRun) store.Run {
	row := r.row
	row.Expired = row.Owner != "" && !row.Until.After(s.now())
	if row.Head.Waiting == nil {
		row.Head.Waiting = []engine.Interrupt{}
	}
	return row
}

// context returns the messages of a context and the position of the first. With whole it
// includes the messages of the context that it was forked from. The caller holds the mutex.
func (s *mapStore) context(r *mapRun, id string, whole bool) (from int, said []convo.Message, err error) {
	for _, ch := range changesOf(s.journal(r), id) {
		if ch.Create {
			if from, said, err = s.inherited(r, &ch, whole); err != nil {
				return 0, nil, err
			}
		}
		added, err := appended(&ch)
		if err != nil {
			return 0, nil, err
		}
		said = append(said, added...)
	}
	return from, said, nil
}

// changesOf returns the changes of a context.
func changesOf(commits []engine.Commit, id string) (out []engine.ContextChange) {
	for _, c := range commits {
		for _, e := range c.Events {
			for _, ch := range engine.ContextChanges(e) {
				if ch.ID == id {
					out = append(out, ch)
				}
			}
		}
	}
	return out
}

// inherited returns what a new context begins with.
func (s *mapStore) inherited(r *mapRun, ch *engine.ContextChange, whole bool) (from int, said []convo.Message, err error) {
	switch {
	case ch.Parent == "":
		return 0, nil, nil
	case ch.Run == "" && !whole:
		return ch.At, nil, nil
	case ch.Run != "":
		if r, err = s.find(ch.Run); err != nil {
			return 0, nil, err
		}
	}
	_, said, err = s.context(r, ch.Parent, true)
	return 0, slices.Clip(said[:min(ch.At, len(said))]), err
}

// appended returns the messages that a change appends.
func appended(ch *engine.ContextChange) ([]convo.Message, error) {
	switch b := ch.Body.(type) {
	case *convo.Change:
		return b.Append, nil
	case convo.Change:
		return b.Append, nil
	case json.RawMessage:
		var c convo.Change
		err := json.Unmarshal(b, &c)
		return c.Append, err
	}
	return nil, nil
}

// Messages implements store.Journal.
func (s *mapStore) Messages(ctx context.Context, run, conversation string, from, to int) ([]convo.Message, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r, err := s.find(run)
	if err != nil {
		return nil, err
	}
	first, said, err := s.context(r, conversation, false)
	from, to = max(from-first, 0), min(to-first, len(said))
	if err != nil || from >= to {
		return []convo.Message{}, err
	}
	return slices.Clone(said[from:to]), nil
}

// FindMessage implements store.Journal.
func (s *mapStore) FindMessage(ctx context.Context, run, conversation, message string, n int) (int, error) {
	if err := s.lock(ctx); err != nil {
		return -1, err
	}
	defer s.mu.Unlock()
	r, err := s.find(run)
	if err != nil {
		return -1, err
	}
	first, said, err := s.context(r, conversation, false)
	for i := min(n-first, len(said)) - 1; i >= 0; i-- {
		if said[i].ID == message {
			return first + i, nil
		}
	}
	return -1, err
}

// Acquire implements store.Leases.
func (s *mapStore) Acquire(ctx context.Context, run, owner string, ttl time.Duration) (store.Lease, error) {
	return s.Seize(ctx, run, "", owner, ttl)
}

// Seize implements store.Leases.
func (s *mapStore) Seize(ctx context.Context, run, from, owner string, ttl time.Duration) (store.Lease, error) {
	if err := s.lock(ctx); err != nil {
		return store.Lease{}, err
	}
	defer s.mu.Unlock()
	r, err := s.find(run)
	if err != nil {
		return store.Lease{}, err
	}
	row := &r.row
	if row.Owner != owner {
		if row.Owner != "" && row.Owner != from && row.Until.After(s.now()) {
			return store.Lease{}, fmt.Errorf("run %s: %w: %s has it until %s", run, store.ErrOwned, row.Owner, row.Until.UTC().Format(time.RFC3339))
		}
		if row.Owner != "" && row.Head.Status == engine.Running && row.Head.Activity == engine.Executing {
			row.Crashes++
		}
		row.Fence++
	}
	row.Owner, row.Until = owner, s.now().Add(ttl)
	return store.Lease{Run: run, Owner: owner, Fence: row.Fence, Until: row.Until, Crashes: row.Crashes}, nil
}

// holds reports whether a lease is the run's.
func (r *mapRun) holds(l *store.Lease) bool { return r.row.Owner == l.Owner && r.row.Fence == l.Fence }

func (r *mapRun) release() {
	r.row.Fence++
	r.row.Owner, r.row.Until = "", time.Time{}
}

// Renew implements store.Leases.
func (s *mapStore) Renew(ctx context.Context, ls []store.Lease, ttl time.Duration) (lost []string, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for i := range ls {
		if r := s.runs[ls[i].Run]; r != nil && r.holds(&ls[i]) {
			r.row.Until = s.now().Add(ttl)
		} else {
			lost = append(lost, ls[i].Run)
		}
	}
	return lost, nil
}

// Release implements store.Leases.
func (s *mapStore) Release(ctx context.Context, l store.Lease) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if r := s.runs[l.Run]; r != nil && r.holds(&l) {
		r.release()
	}
	return nil
}

// Post implements store.Inbox.
func (s *mapStore) Post(ctx context.Context, p store.Post) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, err := s.find(p.Run); err != nil {
		return err
	}
	s.posts++
	p.ID = s.posts
	s.inbox = append(s.inbox, p)
	return nil
}

// Inbox implements store.Inbox.
func (s *mapStore) Inbox(ctx context.Context, run string) ([]store.Post, error) {
	return s.postsTo(ctx, func(id string) bool { return id == run })
}

// PostsForOwner implements store.Inbox.
func (s *mapStore) PostsForOwner(ctx context.Context, owner string) ([]store.Post, error) {
	return s.postsTo(ctx, func(id string) bool { return s.runs[id].row.Owner == owner })
}

func (s *mapStore) postsTo(ctx context.Context, selects func(run string) bool) ([]store.Post, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []store.Post{}
	for _, p := range s.inbox {
		if selects(p.Run) {
			out = append(out, p)
		}
	}
	return out, nil
}

// RemovePosts implements store.Inbox.
func (s *mapStore) RemovePosts(ctx context.Context, ids []int64) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.removePosts(ids)
	return nil
}

func (s *mapStore) removePosts(ids []int64) {
	s.inbox = slices.DeleteFunc(s.inbox, func(p store.Post) bool { return slices.Contains(ids, p.ID) })
}

// PutFlow implements store.Flows.
func (s *mapStore) PutFlow(ctx context.Context, fingerprint string, normal []byte) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.flows[fingerprint] == nil {
		s.flows[fingerprint] = bytes.Clone(normal)
	}
	return nil
}

// Flow implements store.Flows.
func (s *mapStore) Flow(ctx context.Context, fingerprint string) ([]byte, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	normal := s.flows[fingerprint]
	if normal == nil {
		return nil, fmt.Errorf("flow %s: %w", fingerprint, store.ErrNotFound)
	}
	return bytes.Clone(normal), nil
}

// Runs implements store.Listings.
func (s *mapStore) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	order := s.order
	if f.Before != "" {
		r, err := s.find(f.Before)
		if err != nil {
			return nil, err
		}
		order = order[:slices.Index(order, r)]
	}
	out := []store.Run{}
	for _, r := range slices.Backward(order) {
		if len(out) == cmp.Or(f.Limit, 100) {
			break
		}
		if selects(&f, &r.row) {
			out = append(out, s.rowOf(r))
		}
	}
	return out, nil
}

func selects(f *store.Filter, r *store.Run) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(f.Flow, r.Flow) && is(f.User, r.User) && is(f.Parent, r.Parent) && is(f.Session, r.Session) &&
		(!f.Roots || r.Parent == "") && (len(f.Status) == 0 || slices.Contains(f.Status, r.Head.Status))
}

// FindRunIDs implements store.Listings.
func (s *mapStore) FindRunIDs(ctx context.Context, prefix string) ([]string, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	ids := []string{}
	for id := range s.runs {
		if strings.HasPrefix(id, prefix) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[:min(len(ids), 100)], nil
}
