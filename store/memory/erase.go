package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// The unit of deletion is a tree of runs, or a session with the trees of its rounds. Trees that share a past with it
// depend on it. A tree is named by its session or its root run.
type tree struct{ session, run string }

// treeSet has the tree of each run, and the dependencies of trees.
type treeSet struct {
	treeOf     map[*run]tree
	dependents map[tree][]tree
	order      []tree // sessions first, each by age
}

// readTrees reads all runs and sessions; the caller holds the mutexes of both.
func (s *Store) readTrees() (treeSet, error) {
	f := treeSet{treeOf: make(map[*run]tree, len(s.order)), dependents: map[tree][]tree{}}
	for _, r := range s.order { // a parent is older than its children
		t, known := f.treeOf[s.runs[r.row.Parent]]
		switch {
		case known && r.row.Parent != "":
		case r.row.Session != "":
			t = tree{session: r.row.Session}
		default:
			t = tree{run: r.row.ID}
		}
		f.treeOf[r] = t
	}
	f.order = s.listTrees(f)
	depend := func(on, t tree) {
		if on != t {
			f.dependents[on] = append(f.dependents[on], t)
		}
	}
	for _, r := range s.order {
		if r.base != nil {
			depend(f.treeOf[r.base], f.treeOf[r])
		}
		linked, err := r.sourceRuns()
		if err != nil {
			return f, err
		}
		for _, id := range linked {
			if source := s.runs[id]; source != nil {
				depend(f.treeOf[source], f.treeOf[r])
			}
		}
	}
	for _, x := range s.sessions.order {
		if x.parent != nil {
			depend(tree{session: x.parent.row.ID}, tree{session: x.row.ID})
		}
	}
	return f, nil
}

// listTrees lists all trees of a forest: sessions first, each by age.
func (s *Store) listTrees(f treeSet) (out []tree) {
	for _, x := range s.sessions.order {
		out = append(out, tree{session: x.row.ID})
	}
	for _, r := range s.order {
		if t := f.treeOf[r]; t.run == r.row.ID {
			out = append(out, t)
		}
	}
	return out
}

// sourceRuns returns the runs from whose contexts those of this run were forked.
func (r *run) sourceRuns() (ids []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.contexts.index(r)
	for _, c := range r.contexts.byID {
		if c.from.run != "" {
			ids = append(ids, c.from.run)
		}
	}
	return ids, err
}

// withDependents returns a set of trees and their dependents.
func (f treeSet) withDependents(trees ...tree) map[tree]bool {
	seen := map[tree]bool{}
	for len(trees) > 0 {
		t := trees[len(trees)-1]
		if trees = trees[:len(trees)-1]; !seen[t] {
			seen[t] = true
			trees = append(trees, f.dependents[t]...)
		}
	}
	return seen
}

// deleteTrees calls find with all runs and sessions, and deletes the returned trees with their dependents; with a
// user, also the memory of that user.
func (s *Store) deleteTrees(ctx context.Context, e store.DeleteOptions, user string, find func(f treeSet) ([]tree, error)) (store.DeleteResult, error) {
	if err := s.checkOpen(ctx); err != nil {
		return store.DeleteResult{}, err
	}
	if e.Now.IsZero() {
		e.Now = s.clock()
	}
	s.users.mu.Lock()
	defer s.users.mu.Unlock()
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.readTrees()
	if err != nil {
		return store.DeleteResult{}, err
	}
	trees, err := find(f)
	if err == nil && user != "" && !e.DryRun && len(trees) == 0 {
		s.deleteAccess(user)
	}
	if err != nil || len(trees) == 0 {
		dry := err != nil || e.DryRun
		none := func(string) bool { return false }
		return store.DeleteResult{UserValues: s.deleteUserState(user, none, dry), Memories: s.deleteMemories(f, user, nil, dry), Trajectories: s.deleteTrajectories(f, user, nil, dry), Learned: s.deleteLearned(f, user, nil, dry)}, err
	}
	doomed := f.withDependents(slices.Clone(trees)...)
	forks := f.forkedTrees(doomed, trees)
	for r, t := range f.treeOf {
		if row := r.copy(); doomed[t] && !e.Force && row.Owner != "" && row.Until.After(e.Now) {
			return store.DeleteResult{}, fmt.Errorf("run %s: %w: %s", row.ID, store.ErrOwned, row.Owner)
		}
	}
	var out store.DeleteResult
	memories, trajectories := s.deleteMemories(f, user, doomed, e.DryRun), s.deleteTrajectories(f, user, doomed, e.DryRun)
	learned := s.deleteLearned(f, user, doomed, e.DryRun)
	values := s.deleteUserState(user, func(run string) bool { r := s.runs[run]; return r != nil && doomed[f.treeOf[r]] }, e.DryRun)
	if e.DryRun {
		out = s.count(f, slices.Collect(maps.Keys(doomed)))
	} else {
		if user != "" {
			s.deleteAccess(user)
		}
		out = s.removeTrees(f, doomed)
	}
	out.Forks, out.Memories, out.Trajectories, out.Learned, out.UserValues = forks, memories, trajectories, learned, values
	return out, nil
}

// forkedTrees returns the trees of a set that are not in another, sessions first, each by age.
func (f treeSet) forkedTrees(set map[tree]bool, less []tree) []store.Tree {
	var out []store.Tree
	for _, t := range f.order {
		if set[t] && !slices.Contains(less, t) {
			out = append(out, store.Tree{Session: t.session, Run: t.run})
		}
	}
	return out
}

// removeTrees deletes trees.
func (s *Store) removeTrees(f treeSet, doomed map[tree]bool) (out store.DeleteResult) {
	users, ids := make(map[string]bool), make(map[string]bool)
	s.order = slices.DeleteFunc(slices.Clone(s.order), func(r *run) bool { // listings use the old slice
		if !doomed[f.treeOf[r]] {
			return false
		}
		out.Runs++
		addRootRun(&out, r)
		out.Messages += r.messagesAdded()
		users[r.row.User], ids[r.row.ID] = true, true
		r.mu.Lock()
		r.release() // a process that still has it can no longer commit
		r.mu.Unlock()
		delete(s.runs, r.row.ID)
		s.inboxMu.Lock()
		s.inbox = slices.DeleteFunc(s.inbox, func(p store.Post) bool { return p.Run == r.row.ID })
		s.inboxMu.Unlock()
		return true
	})
	for t, yes := range doomed {
		ids[t.session] = yes // "" for the tree of a run, and no document has that
	}
	s.deleteDocuments("", func(id string) bool { return ids[id] })
	t := &s.sessions
	gone := func(id string) bool { return doomed[tree{session: id}] }
	t.order = slices.DeleteFunc(t.order, func(x *session) bool { return gone(x.row.ID) })
	t.queue = slices.DeleteFunc(t.queue, func(q *store.QueuedMessage) bool { return gone(q.Session) })
	maps.DeleteFunc(t.messages, func(_ string, q *store.QueuedMessage) bool { return gone(q.Session) })
	maps.DeleteFunc(t.byID, func(id string, _ *session) bool {
		if gone(id) {
			out.Sessions++
		}
		return gone(id)
	})
	s.deleteCached(users)
	return out
}

// addRootRun adds the id of a run to a result if no other run has started it.
func addRootRun(out *store.DeleteResult, r *run) {
	if r.row.Parent == "" {
		out.RootRuns = append(out.RootRuns, r.row.ID)
	}
}

// deleteCached removes the entries of users and the shared ones. The caller holds the mutex.
func (s *Store) deleteCached(users map[string]bool) {
	maps.DeleteFunc(s.cache, func(key string, _ cacheEntry) bool {
		if strings.HasPrefix(key, store.LearnedCodePrefix) {
			return false
		}
		if !strings.HasPrefix(key, store.CachePrefix) {
			return true
		}
		for user := range users {
			if strings.HasPrefix(key, store.CachePrefixOf(user)) {
				return true
			}
		}
		return false
	})
}

// messagesAdded returns the number of messages that the run itself added.
func (r *run) messagesAdded() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.contexts.byID { // indexed by forest
		n += len(c.list)
	}
	return n
}

// DeleteSession implements store.DeletionStore.
func (s *Store) DeleteSession(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	out, err := s.deleteTrees(ctx, e, "", func(treeSet) ([]tree, error) {
		if s.sessions.byID[id] == nil {
			return nil, store.ErrNotFound
		}
		return []tree{{session: id}}, nil
	})
	return out, wrap("delete session "+id, err)
}

// DeleteRun implements store.DeletionStore.
func (s *Store) DeleteRun(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error) {
	out, err := s.deleteTrees(ctx, e, "", func(f treeSet) ([]tree, error) {
		r := s.runs[id]
		if r == nil {
			return nil, store.ErrNotFound
		}
		if t := f.treeOf[r]; t.run != id {
			return nil, fmt.Errorf("%w: of %s", store.ErrNotRoot, cmp.Or(t.session, t.run))
		}
		return []tree{{run: id}}, nil
	})
	return out, wrap("delete run "+id, err)
}

// DeleteUser implements store.DeletionStore.
func (s *Store) DeleteUser(ctx context.Context, user string, e store.DeleteOptions) (store.DeleteResult, error) {
	if user == "" {
		return store.DeleteResult{}, fmt.Errorf("delete user: no name: %w", store.ErrNotFound)
	}
	out, err := s.deleteTrees(ctx, e, user, func(f treeSet) (trees []tree, err error) {
		for r, t := range f.treeOf {
			if r.row.User == user {
				trees = append(trees, t)
			}
		}
		for _, x := range s.sessions.order {
			if x.row.User == user {
				trees = append(trees, tree{session: x.row.ID})
			}
		}
		return trees, nil
	})
	return out, wrap("delete user "+user, err)
}

func wrap(op string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// Compact does nothing: deletions leave no parts of what they delete.
func (s *Store) Compact(context.Context) (bool, error) { return false, nil }

// PruneSessions implements store.DeletionStore.
func (s *Store) PruneSessions(ctx context.Context, p store.PruneOptions) (store.DeleteResult, error) {
	if p.Now.IsZero() {
		p.Now = s.clock()
	}
	var counted store.DeleteResult
	var kept []store.KeptSession
	out, err := s.deleteTrees(ctx, store.DeleteOptions{Now: p.Now, Force: true}, "", func(f treeSet) ([]tree, error) {
		taken := s.sessions.expiredSessions(p)
		busy := map[tree]bool{}
		for r, t := range f.treeOf {
			if row := r.copy(); row.Owner != "" && row.Until.After(p.Now) {
				busy[t] = true
			}
		}
		var trees []tree
		trees, kept = f.prunable(taken, busy)
		if p.DryRun {
			counted = s.count(f, trees)
			with := f.withDependents(slices.Clone(trees)...)
			counted.Memories, counted.Trajectories, counted.Learned = s.deleteMemories(f, "", with, true), s.deleteTrajectories(f, "", with, true), s.deleteLearned(f, "", with, true)
			trees = nil
		}
		return trees, nil
	})
	if p.DryRun {
		out = counted
	}
	out.Kept = kept
	return out, wrap("prune sessions", err)
}

// prunable returns the sessions of a set that can be deleted, and those that must be kept because a kept record
// shares their past, or because they are being executed.
func (f treeSet) prunable(taken, busy map[tree]bool) (out []tree, kept []store.KeptSession) {
	for _, t := range f.order {
		if !taken[t] {
			continue
		}
		with := f.withDependents(t)
		k := store.KeptSession{Session: t.session}
		for d := range with { // order: the set is reduced until nothing changes
			k.Busy = k.Busy || busy[d]
			if taken[d] {
				delete(with, d)
			}
		}
		if k.Forks = f.forkedTrees(with, nil); k.Forks == nil && !k.Busy {
			out = append(out, t)
		} else {
			kept = append(kept, k)
		}
	}
	return out, kept
}

// count returns what removing trees would delete.
func (s *Store) count(f treeSet, trees []tree) (out store.DeleteResult) {
	for _, t := range trees {
		if t.session != "" {
			out.Sessions++
		}
	}
	for _, r := range s.order {
		if t, ok := f.treeOf[r]; ok && slices.Contains(trees, t) {
			out.Runs++
			addRootRun(&out, r)
			out.Messages += r.messagesAdded()
		}
	}
	return out
}

// expiredSessions returns the sessions that p selects.
func (t *sessions) expiredSessions(p store.PruneOptions) map[tree]bool {
	type group struct{ user, flow string }
	groups := map[group][]*session{}
	for _, x := range slices.Backward(t.order) {
		if (p.User == "" || p.User == x.row.User) && (p.Flow == "" || p.Flow == x.row.Flow) {
			g := group{x.row.User, x.row.Flow}
			groups[g] = append(groups[g], x)
		}
	}
	taken := map[tree]bool{}
	for _, list := range groups {
		slices.SortStableFunc(list, func(a, b *session) int { return b.lastMessageAt().Compare(a.lastMessageAt()) })
		for place, x := range list {
			expired := !x.row.Expires.IsZero() && !x.row.Expires.After(p.Now)
			old := p.OlderThan > 0 && x.lastMessageAt().Before(p.Now.Add(-p.OlderThan))
			if expired || (old || p.Keep > 0 && place >= p.Keep) && !x.waits() {
				taken[tree{session: x.row.ID}] = true
			}
		}
	}
	return taken
}

// waits reports whether the round of the session waits for an answer or a timer.
func (s *session) waits() bool {
	n := len(s.rounds)
	if s.row.Holder == "" || n == 0 {
		return false
	}
	h := s.rounds[n-1].copy().Head
	return h.Status == engine.Paused || len(h.Waiting) > 0 || h.Due > 0
}

// lastMessageAt returns the time of the session's last message.
func (s *session) lastMessageAt() time.Time {
	at := s.row.Updated
	if n := len(s.rounds); n > 0 {
		if row := s.rounds[n-1].copy(); row.Commits > 0 && row.Updated.After(at) {
			at = row.Updated
		}
	}
	return at
}
