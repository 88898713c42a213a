package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// documents is the data of a server other than runs. mu guards all fields.
type documents struct {
	mu         sync.Mutex
	byKey      map[documentKey]*store.Document
	notices    []store.Notice
	lastNotice int64
	wanted     atomic.Int64 // documents of store.NoticeKind; written with mu held
}

type documentKey struct{ kind, id string }

func copyDocument(d *store.Document) store.Document {
	c := *d
	c.Body = bytes.Clone(d.Body)
	return c
}

// PutDocument implements store.DocumentStore.
func (s *Store) PutDocument(ctx context.Context, d store.Document) (store.Document, error) {
	if err := s.checkOpen(ctx); err != nil {
		return d, err
	}
	op, now := "keep "+d.Kind+" "+d.ID, s.clock()
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	k := documentKey{d.Kind, d.ID}
	have := s.documents.byKey[k]
	switch {
	case have == nil && d.Version == 0:
		d.Created = now
	case have == nil:
		return d, wrap(op, store.ErrNotFound)
	case d.Version == 0:
		return d, wrap(op, store.ErrExists)
	case have.Version != d.Version:
		return d, wrap(op, store.ErrChanged)
	default:
		d.Created = have.Created
	}
	d.Version++
	d.Updated = now
	if s.documents.byKey == nil {
		s.documents.byKey = make(map[documentKey]*store.Document)
	}
	kept := copyDocument(&d)
	s.documents.byKey[k] = &kept
	if have == nil && d.Kind == store.NoticeKind {
		s.documents.wanted.Add(1)
	}
	return d, nil
}

// Document implements store.DocumentStore.
func (s *Store) Document(ctx context.Context, kind, id string) (store.Document, error) {
	if err := s.checkOpen(ctx); err != nil {
		return store.Document{}, err
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	d := s.documents.byKey[documentKey{kind, id}]
	if d == nil {
		return store.Document{}, wrap("read "+kind+" "+id, store.ErrNotFound)
	}
	return copyDocument(d), nil
}

// Documents implements store.DocumentStore.
func (s *Store) Documents(ctx context.Context, f store.DocumentFilter) ([]store.Document, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	out := []store.Document{}
	for k, d := range s.documents.byKey { // order: sorted below
		if k.kind == f.Kind && (f.User == "" || d.User == f.User) && (f.Run == "" || d.Run == f.Run) && strings.HasPrefix(k.id, f.Prefix) && k.id > f.After {
			out = append(out, copyDocument(d))
		}
	}
	slices.SortFunc(out, func(a, b store.Document) int { return cmp.Compare(a.ID, b.ID) })
	return out[:min(len(out), cmp.Or(f.Limit, 100))], nil
}

// DocumentKinds implements store.DocumentStore.
func (s *Store) DocumentKinds(ctx context.Context) ([]string, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	kinds := make(map[string]bool)
	for k := range s.documents.byKey { // order: sorted below
		kinds[k.kind] = true
	}
	return slices.Sorted(maps.Keys(kinds)), nil
}

// DeleteDocument implements store.DocumentStore.
func (s *Store) DeleteDocument(ctx context.Context, kind, id string, version int64) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	k := documentKey{kind, id}
	have := s.documents.byKey[k]
	switch {
	case have == nil:
		return wrap("delete "+kind+" "+id, store.ErrNotFound)
	case version != 0 && have.Version != version:
		return wrap("delete "+kind+" "+id, store.ErrChanged)
	}
	delete(s.documents.byKey, k)
	if kind == store.NoticeKind {
		s.documents.wanted.Add(-1)
	}
	return nil
}

// TrimDocuments implements store.DocumentStore.
func (s *Store) TrimDocuments(ctx context.Context, kind string, keep int, after string) (int, error) {
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	var ids []string
	for k := range s.documents.byKey { // order: sorted below
		if k.kind == kind {
			ids = append(ids, k.id)
		}
	}
	slices.Sort(ids)
	n := 0
	for i := len(ids) - 1; i >= 0 && n < store.MaxTrimmed && (i >= keep || ids[i] > after); i-- {
		delete(s.documents.byKey, documentKey{kind, ids[i]})
		n++
	}
	if kind == store.NoticeKind {
		s.documents.wanted.Add(-int64(n))
	}
	return n, nil
}

// ClaimDocuments implements store.DocumentStore.
func (s *Store) ClaimDocuments(ctx context.Context, kind string, ttl time.Duration, limit int) ([]store.Document, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	now := s.clock()
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	var due []*store.Document
	for k, d := range s.documents.byKey { // order: sorted below
		if k.kind == kind && !d.Due.IsZero() && !d.Due.After(now) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b *store.Document) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) })
	var out []store.Document
	for _, d := range due[:min(len(due), limit)] {
		d.Version, d.Due, d.Updated = d.Version+1, now.Add(ttl), now
		out = append(out, copyDocument(d))
	}
	return out, nil
}

// headOf returns the head of a run before a commit, zero for a run that the commit makes.
func (s *Store) headOf(id string) (h store.Head) {
	s.mu.RLock()
	r := s.runs[id]
	s.mu.RUnlock()
	if r != nil {
		r.mu.Lock()
		h = r.row.Head
		r.mu.Unlock()
	}
	return h
}

// notify leaves a notice of a commit that has ended a run or changed its questions.
func (s *Store) notify(a *store.Append, before *store.Head) {
	s.notifyNear(a)
	waiting := interruptIDs(a.Head.Waiting)
	same := before.Status == a.Head.Status && slices.Equal(interruptIDs(before.Waiting), waiting)
	if same || len(waiting) == 0 && !a.Head.Status.Ended() {
		return
	}
	s.addNotice(a, &store.Notice{Waiting: waiting})
}

// notifyNear leaves a notice of budgets that are near their limits.
func (s *Store) notifyNear(a *store.Append) {
	if len(a.NearBudgets) > 0 {
		s.addNotice(a, &store.Notice{Budgets: slices.Clone(a.NearBudgets)})
	}
}

func (s *Store) addNotice(a *store.Append, n *store.Notice) {
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	s.documents.lastNotice++
	n.ID, n.Run, n.Seq, n.Status, n.At = s.documents.lastNotice, a.Commit.Run, a.Commit.Seq, a.Head.Status, time.UnixMilli(a.Commit.At)
	s.documents.notices = append(s.documents.notices, *n)
}

func interruptIDs(list []engine.Interrupt) (ids []string) {
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// Notices implements store.DocumentStore.
func (s *Store) Notices(ctx context.Context, limit int) ([]store.Notice, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, fmt.Errorf("read notices: %w", err)
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	return slices.Clone(s.documents.notices[:min(limit, len(s.documents.notices))]), nil
}

// RemoveNotices implements store.DocumentStore.
func (s *Store) RemoveNotices(ctx context.Context, ids []int64) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	s.documents.notices = slices.DeleteFunc(s.documents.notices, func(n store.Notice) bool { return slices.Contains(ids, n.ID) })
	return nil
}

// deleteDocuments deletes the documents of a user, if it is not "", and of runs and
// sessions.
func (s *Store) deleteDocuments(user string, gone func(id string) bool) {
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	maps.DeleteFunc(s.documents.byKey, func(k documentKey, d *store.Document) bool {
		doomed := user != "" && d.User == user || d.Run != "" && gone(d.Run)
		if doomed && k.kind == store.NoticeKind {
			s.documents.wanted.Add(-1)
		}
		return doomed
	})
	s.documents.notices = slices.DeleteFunc(s.documents.notices, func(n store.Notice) bool { return gone(n.Run) })
}
