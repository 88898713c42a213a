package memory

import (
	"context"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// Trajectories returns the store's tables of trajectories, which are closed with the store.
func (s *Store) Trajectories() tables.Tables { return trajectories{s} }

// trajectories are the tables of an open store.
type trajectories struct{ s *Store }

func (t trajectories) Replace(ctx context.Context, r tables.Rows) error {
	if err := t.s.checkOpen(ctx); err != nil {
		return err
	}
	return t.s.trajectories.Replace(ctx, r)
}

func (t trajectories) Rows(ctx context.Context, k trajectory.Key) (tables.Rows, error) {
	if err := t.s.checkOpen(ctx); err != nil {
		return tables.Rows{}, err
	}
	return t.s.trajectories.Rows(ctx, k)
}

func (t trajectories) Rounds(ctx context.Context, f trajectory.Filter) ([]trajectory.Key, error) {
	if err := t.s.checkOpen(ctx); err != nil {
		return nil, err
	}
	return t.s.trajectories.Rounds(ctx, f)
}

func (t trajectories) Nodes(ctx context.Context, typ trajectory.Type, f trajectory.Filter) ([]tables.Node, error) {
	if err := t.s.checkOpen(ctx); err != nil {
		return nil, err
	}
	return t.s.trajectories.Nodes(ctx, typ, f)
}

func (t trajectories) Edges(ctx context.Context, f trajectory.Filter) ([]tables.Edge, error) {
	if err := t.s.checkOpen(ctx); err != nil {
		return nil, err
	}
	return t.s.trajectories.Edges(ctx, f)
}

func (t trajectories) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	if err := t.s.checkOpen(ctx); err != nil {
		return 0, 0, err
	}
	return t.s.trajectories.Adjacent(ctx, k)
}

func (t trajectories) Delete(ctx context.Context, f trajectory.Filter) (int, error) {
	if err := t.s.checkOpen(ctx); err != nil {
		return 0, err
	}
	return t.s.trajectories.Delete(ctx, f)
}

// deleteTrajectories deletes the trajectories of a user, "" for none, and of deleted trees, or only counts them. A
// run without a session has its trajectory under its own id. The caller holds the mutexes of runs and sessions.
func (s *Store) deleteTrajectories(f treeSet, user string, doomed map[tree]bool, dry bool) (n int) {
	gone := func(k trajectory.Key) bool {
		r := s.runs[k.Session]
		alone := r != nil && s.sessions.byID[k.Session] == nil
		if user != "" && k.User == user || doomed[tree{session: k.Session}] || alone && doomed[f.treeOf[r]] {
			n++
			return !dry
		}
		return false
	}
	s.trajectories.DeleteFunc(gone)
	return n
}
