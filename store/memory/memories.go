package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
)

// memories is the long-term memory; its zero value is empty.
type memories struct {
	mu    sync.RWMutex  // guards the following fields
	items []*memoryItem // by creation
	last  int64
	calls map[[16]byte]callResult
}

// memoryItem is an item with its versions.
type memoryItem struct {
	num     int64
	item    memory.Item
	terms   []string
	earlier []memory.Version
}

// callResult is the result of a call; version is 0 if it deleted the item.
type callResult struct {
	scope   memory.Scope
	written memory.WriteResult
}

// Remember implements memory.Store.
func (s *Store) Remember(ctx context.Context, w memory.Write) (memory.WriteResult, error) {
	w, err := w.Normalized()
	if err == nil {
		err = s.checkOpen(ctx)
	}
	if err != nil {
		return memory.WriteResult{}, fmt.Errorf("remember: %w", err)
	}
	m := &s.memories
	m.mu.Lock()
	defer m.mu.Unlock()
	digest := memory.CallDigest(w.Call)
	if c, known := m.calls[digest]; known && w.Call != "" {
		return c.written, nil
	}
	out, err := m.write(&w)
	if err == nil {
		m.recordCall(w.Call, w.Scope, out)
	}
	return out, wrap("remember", err)
}

// recordCall stores the result of a call.
func (m *memories) recordCall(call string, scope memory.Scope, out memory.WriteResult) {
	if call == "" {
		return
	}
	if m.calls == nil {
		m.calls = map[[16]byte]callResult{}
	}
	m.calls[memory.CallDigest(call)] = callResult{scope, out}
}

// write finds the item of which a write is a new version, and writes.
func (m *memories) write(w *memory.Write) (memory.WriteResult, error) {
	n := 0
	for _, x := range m.items {
		if x.item.Scope != w.Scope {
			continue
		}
		n++
		if x.item.Kind != w.Kind || x.item.Key != w.Key {
			continue
		}
		if w.SameContent(&x.item) {
			return memory.WriteResult{ID: x.item.ID, Version: x.item.Number, Known: true}, nil
		}
		if w.Key != "" {
			x.replace(w)
			return memory.WriteResult{ID: x.item.ID, Version: x.item.Number}, nil
		}
	}
	if w.MaxItems > 0 && n >= w.MaxItems {
		return memory.WriteResult{}, fmt.Errorf("%w: it holds %d items, and may hold %d", memory.ErrFull, n, w.MaxItems)
	}
	if slices.ContainsFunc(m.items, func(x *memoryItem) bool { return x.item.ID == w.ID }) {
		return memory.WriteResult{}, fmt.Errorf("item %s: %w", w.ID, store.ErrExists)
	}
	m.last++
	item := w.Item(1)
	item.Tags = slices.Clone(item.Tags)
	m.items = append(m.items, &memoryItem{num: m.last, item: item, terms: item.Terms()})
	return memory.WriteResult{ID: w.ID, Version: 1}, nil
}

// replace adds a version to an item.
func (x *memoryItem) replace(w *memory.Write) {
	x.earlier = append(x.earlier, x.item.Version)
	x.earlier = x.earlier[max(len(x.earlier)-memory.MaxVersions+1, 0):]
	x.item.Version = w.Item(x.item.Number + 1).Version
	x.item.Tags = slices.Clone(x.item.Tags)
	x.terms = x.item.Terms()
}

// copy returns the item for callers.
func (x *memoryItem) copy() memory.Item {
	i := x.item
	i.Tags = slices.Clone(i.Tags)
	return i
}

// Recall implements memory.Store.
func (s *Store) Recall(ctx context.Context, q memory.Query) (memory.QueryResult, error) {
	q, err := q.Normalized()
	if err == nil {
		err = s.checkOpen(ctx)
	}
	if err != nil {
		return memory.QueryResult{}, fmt.Errorf("recall: %w", err)
	}
	m := &s.memories
	m.mu.RLock()
	defer m.mu.RUnlock()
	terms := memory.SearchTerms(q.Text)
	stats := memory.Stats{With: make([]int, len(terms))}
	byNum := map[int64]*memoryItem{}
	var list []memory.Candidate
	for _, x := range m.items {
		if x.item.Scope != q.Scope {
			continue
		}
		stats.Items++
		stats.Words += len(x.terms)
		fits := q.Text == ""
		for i, t := range terms {
			if t.MatchesAny(x.terms) {
				stats.With[i]++
				fits = true
			}
		}
		if fits && q.Matches(&x.item) {
			byNum[x.num] = x
			list = append(list, memory.Candidate{Terms: x.terms, At: x.item.At, Seq: x.num})
		}
	}
	memory.Rank(terms, stats, list)
	out := memory.QueryResult{Items: []memory.Item{}, Total: len(list)}
	for _, c := range list[:min(len(list), q.Limit)] {
		out.Items = append(out.Items, byNum[c.Seq].copy())
	}
	return out, nil
}

// Forget implements memory.Store.
func (s *Store) Forget(ctx context.Context, scope memory.Scope, id, call string) (bool, error) {
	err := scope.Check()
	if err == nil {
		err = s.checkOpen(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("forget %s: %w", id, err)
	}
	m := &s.memories
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, known := m.calls[memory.CallDigest(call)]; known && call != "" {
		return !c.written.Known, nil
	}
	there := m.remove(func(i *memory.Item) bool { return i.Scope == scope && i.ID == id }) > 0
	m.recordCall(call, scope, memory.WriteResult{ID: id, Known: !there})
	return there, nil
}

func (m *memories) remove(doomed func(i *memory.Item) bool) int {
	before := len(m.items)
	m.items = slices.DeleteFunc(m.items, func(x *memoryItem) bool { return doomed(&x.item) })
	return before - len(m.items)
}

// Memories implements store.MemoryStore.
func (s *Store) Memories(ctx context.Context, f memory.Filter) ([]memory.Item, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, fmt.Errorf("list memories: %w", err)
	}
	m := &s.memories
	m.mu.RLock()
	defer m.mu.RUnlock()
	var found []*memoryItem
	for _, x := range m.items {
		if f.Matches(&x.item) {
			found = append(found, x)
		}
	}
	slices.SortFunc(found, func(a, b *memoryItem) int {
		return cmp.Or(b.item.Written.Compare(a.item.Written), cmp.Compare(b.num, a.num))
	})
	if !f.Behind.IsStart() {
		found = m.behind(found, f.Behind)
	}
	if f.Limit > 0 && len(found) > f.Limit {
		found = found[:f.Limit]
	}
	out := []memory.Item{}
	for _, x := range found {
		out = append(out, x.copy())
	}
	return out, nil
}

// behind returns the part of a list behind a position.
func (m *memories) behind(list []*memoryItem, p memory.Position) []*memoryItem {
	num := int64(math.MaxInt64) // of an item that was forgotten, only the time is known
	if i := slices.IndexFunc(m.items, func(x *memoryItem) bool { return x.item.ID == p.ID }); i >= 0 {
		num = m.items[i].num
	}
	at := time.UnixMilli(p.Written.UnixMilli())
	return slices.DeleteFunc(list, func(x *memoryItem) bool {
		return x.item.Written.After(at) || x.item.Written.Equal(at) && x.num >= num
	})
}

// MemoryOwners implements store.MemoryStore.
func (s *Store) MemoryOwners(ctx context.Context, f memory.Filter) ([]memory.Owner, error) {
	f.Limit, f.Behind = 0, memory.Position{}
	list, err := s.Memories(ctx, f)
	if err != nil {
		return nil, err
	}
	owners := map[memory.Scope]memory.Owner{}
	for i := range list { // the last written item comes first
		o := owners[list[i].Scope]
		if o.Items++; o.Items == 1 {
			o.Scope, o.Newest = list[i].Scope, list[i].Written
		}
		owners[o.Scope] = o
	}
	out := slices.AppendSeq([]memory.Owner{}, maps.Values(owners))
	slices.SortFunc(out, func(a, b memory.Owner) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.User, b.User), strings.Compare(a.Session, b.Session))
	})
	return out, nil
}

// MemoryVersions implements store.MemoryStore.
func (s *Store) MemoryVersions(ctx context.Context, id string) ([]memory.Version, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, fmt.Errorf("memory %s: %w", id, err)
	}
	m := &s.memories
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, x := range m.items {
		if x.item.ID == id {
			return append(slices.Clone(x.earlier), x.copy().Version), nil
		}
	}
	return nil, fmt.Errorf("memory %s: %w", id, store.ErrNotFound)
}

// ForgetMemories implements store.MemoryStore.
func (s *Store) ForgetMemories(ctx context.Context, f memory.Filter) (store.DeleteResult, error) {
	if err := s.checkOpen(ctx); err != nil {
		return store.DeleteResult{}, fmt.Errorf("forget memories: %w", err)
	}
	m := &s.memories
	m.mu.Lock()
	defer m.mu.Unlock()
	return store.DeleteResult{Memories: m.deleteItems(f.MatchesScope, f.Matches)}, nil
}

// deleteItems deletes items, and the results of calls in scopes that are then empty.
func (m *memories) deleteItems(owned func(memory.Scope) bool, doomed func(*memory.Item) bool) int {
	n := m.remove(doomed)
	full := map[memory.Scope]bool{}
	for _, x := range m.items {
		full[x.item.Scope] = true
	}
	maps.DeleteFunc(m.calls, func(_ [16]byte, c callResult) bool { return owned(c.scope) && !full[c.scope] })
	return n
}

// deleteMemories deletes the memory of a user and of the sessions in trees, and removes their names from the origins
// of other items; with dry it only counts.
func (s *Store) deleteMemories(f treeSet, user string, doomed map[tree]bool, dry bool) (n int) {
	m := &s.memories
	m.mu.Lock()
	defer m.mu.Unlock()
	session := func(id string) bool { return id != "" && doomed[tree{session: id}] }
	owned := func(o memory.Scope) bool { return user != "" && o.User == user || session(o.Session) }
	if dry {
		for _, x := range m.items {
			if owned(x.item.Scope) {
				n++
			}
		}
		return n
	}
	n = m.deleteItems(owned, func(i *memory.Item) bool { return owned(i.Scope) })
	clean := func(x *memory.Source) {
		if r := s.runs[x.Run]; r != nil && doomed[f.treeOf[r]] || session(x.Session) {
			x.Run, x.Session, x.Round = "", "", 0
		}
	}
	for _, x := range m.items {
		clean(&x.item.Source)
		for i := range x.earlier {
			clean(&x.earlier[i].Source)
		}
	}
	return n
}
