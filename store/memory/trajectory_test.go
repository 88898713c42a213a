package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

func TestTrajectoriesAreKeptInMemory(t *testing.T) {
	trajectorytest.Run(t, func(*testing.T) trajectory.Storage { return tables.New(memory.New().Trajectories()) })
	trajectorytest.RunTables(t, func(*testing.T) tables.Tables {
		var h tables.Provider = memory.New()
		return h.Trajectories()
	})
}

func TestTrajectoriesLiveAsLongAsTheStore(t *testing.T) {
	ctx := t.Context()
	s := memory.New()
	rows, err := tables.RowsOf(trajectorytest.Sample(t, trajectory.Key{Session: "s", Round: 1}, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Trajectories().Replace(ctx, rows); err != nil {
		t.Fatal(err)
	}
	in := s.Trajectories()
	if _, err := in.Rows(ctx, rows.Key()); err != nil {
		t.Errorf("asked for again, the tables are others: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, ofRows := in.Rows(ctx, rows.Key())
	_, rounds := in.Rounds(ctx, trajectory.Filter{})
	_, nodes := in.Nodes(ctx, trajectory.Query, trajectory.Filter{})
	_, edges := in.Edges(ctx, trajectory.Filter{})
	_, _, near := in.Adjacent(ctx, rows.Key())
	_, gone := in.Delete(ctx, trajectory.Filter{})
	for i, err := range []error{in.Replace(ctx, rows), ofRows, rounds, nodes, edges, near, gone} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("call %d: got %v, want ErrClosed", i, err)
		}
	}
}

func TestDeletingOwnersDeletesTrajectories(t *testing.T) {
	at := time.UnixMilli(1)
	now := at.Add(24 * time.Hour)
	ctx := t.Context()
	all := []string{"bob/alone", "bob/bobs", "bob/elsewhere", "bob/same", "eve/eves"}
	for _, x := range []struct {
		name  string
		erase func(s *memory.Store, dry bool) (store.DeleteResult, error)
		gone  []string
	}{
		{"session", func(s *memory.Store, dry bool) (store.DeleteResult, error) {
			return s.DeleteSession(ctx, "bobs", store.DeleteOptions{Now: now, DryRun: dry})
		}, []string{"bob/bobs"}},
		{"run", func(s *memory.Store, dry bool) (store.DeleteResult, error) {
			return s.DeleteRun(ctx, "alone", store.DeleteOptions{Now: now, DryRun: dry})
		}, []string{"bob/alone"}},
		{"run with the name of a session", func(s *memory.Store, dry bool) (store.DeleteResult, error) {
			return s.DeleteRun(ctx, "same", store.DeleteOptions{Now: now, DryRun: dry})
		}, nil},
		{"user", func(s *memory.Store, dry bool) (store.DeleteResult, error) {
			return s.DeleteUser(ctx, "bob", store.DeleteOptions{Now: now, DryRun: dry})
		}, all[:4]},
		{"user without a session", func(s *memory.Store, dry bool) (store.DeleteResult, error) {
			return s.DeleteUser(ctx, "eve", store.DeleteOptions{Now: now, DryRun: dry})
		}, all[4:]},
		{"prune", func(s *memory.Store, dry bool) (store.DeleteResult, error) {
			return s.PruneSessions(ctx, store.PruneOptions{Now: now, User: "bob", OlderThan: time.Hour, DryRun: dry})
		}, []string{"bob/bobs", "bob/same"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := remembered(t, at)
			for _, dry := range []bool{true, false} {
				out, err := x.erase(s, dry)
				if err != nil || out.Trajectories != len(x.gone) {
					t.Errorf("deleted %d trajectories, %v, want %d (dry: %v)", out.Trajectories, err, len(x.gone), dry)
				}
				want := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !dry && slices.Contains(x.gone, s) })
				if left := owners(t, s); !slices.Equal(left, want) {
					t.Errorf("left are %v, want %v (dry: %v)", left, want, dry)
				}
			}
		})
	}
}

// remembered returns a store with sessions and runs, some of one name, and trajectories.
func remembered(t *testing.T, at time.Time) *memory.Store {
	t.Helper()
	ctx := t.Context()
	s := memory.New()
	in := tables.New(s.Trajectories())
	err := errors.Join(
		s.CreateSession(ctx, store.NewSession{ID: "bobs", User: "bob", Flow: "f", Thread: "1", Now: at}),
		s.CreateSession(ctx, store.NewSession{ID: "same", User: "bob", Flow: "f", Thread: "2", Now: at}),
		s.Create(ctx, store.NewRun{ID: "alone", User: "bob", At: at}),
		s.Create(ctx, store.NewRun{ID: "same", At: at}),
	)
	for _, k := range []trajectory.Key{
		{User: "bob", Session: "alone", Round: 1},
		{User: "bob", Session: "bobs", Round: 1},
		{User: "bob", Session: "same", Round: 1},
		{User: "bob", Session: "elsewhere", Round: 1},
		{User: "eve", Session: "eves", Round: 1},
	} {
		err = errors.Join(err, in.Save(ctx, trajectorytest.Sample(t, k, 0)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// owners returns the sessions of which there are trajectories, with their users.
func owners(t *testing.T, s *memory.Store) (out []string) {
	t.Helper()
	keys, err := s.Trajectories().Rounds(t.Context(), trajectory.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		out = append(out, fmt.Sprint(k.User, "/", k.Session))
	}
	return out
}
