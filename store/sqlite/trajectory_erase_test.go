package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// testRecord returns a round whose texts are all somebody's canaries, in small or in large.
func testRecord(t *testing.T, k trajectory.Key, who string, size int) trajectory.Record {
	t.Helper()
	r := trajectorytest.Sample(t, k, 1)
	r.Agent = canary(who, "agent", size)
	for i := range r.Nodes {
		n := &r.Nodes[i]
		n.Name, n.Description = canary(who, "node", size), canary(who, "description", size)
		n.Attributes["text"] = canary(who, "attribute", size)
		n.By = trajectory.Attribution{Run: who + "-canary-run", Path: who + "-canary-path", Agent: who + "-canary-agent", User: who + "-canary-author"}
		n.Version, n.History = 2, trajectory.History{1: {Old: trajectory.Attributes{"text": canary(who, "history", size)}}}
	}
	for i := range r.Messages {
		r.Messages[i].Text = canary(who, "said", size)
	}
	return r
}

// addTrajectories stores trajectories: two rounds of each session.
func addTrajectories(t *testing.T, s *Store, who string, sessions ...string) {
	t.Helper()
	in := tables.New(s.Trajectories())
	for _, session := range sessions {
		for sub := range 2 {
			k := trajectory.Key{User: who + "-canary-user", Session: who + "-canary-" + session, Round: 1, Sub: sub}
			for _, size := range []int{500, 40, 1} { // each takes the room of the one before
				if err := in.Save(t.Context(), testRecord(t, k, who, size)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// trajectoriesOf lists the rounds of a user.
func trajectoriesOf(t *testing.T, s *Store, user string) (out []string) {
	t.Helper()
	keys, err := s.Trajectories().Rounds(t.Context(), trajectory.Filter{User: &user})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		out = append(out, fmt.Sprintf("%s/%d/%d", k.Session, k.Round, k.Sub))
	}
	return out
}

func TestDeletingOwnersDeletesTrajectories(t *testing.T) {
	var later store.DeleteOptions
	all := []string{
		"bob-canary-alone/1/0", "bob-canary-alone/1/1", "bob-canary-elsewhere/1/0", "bob-canary-elsewhere/1/1",
		"bob-canary-session/1/0", "bob-canary-session/1/1",
	}
	for name, x := range map[string]struct {
		erase func(ctx context.Context, s *Store, e store.DeleteOptions) (store.DeleteResult, error)
		left  []string
	}{
		"session": {func(ctx context.Context, s *Store, e store.DeleteOptions) (store.DeleteResult, error) {
			return s.DeleteSession(ctx, "bob-canary-session", e)
		}, all[:4]},
		"run": {func(ctx context.Context, s *Store, e store.DeleteOptions) (store.DeleteResult, error) {
			return s.DeleteRun(ctx, "bob-canary-alone", e)
		}, all[2:]},
		"user": {func(ctx context.Context, s *Store, e store.DeleteOptions) (store.DeleteResult, error) {
			return s.DeleteUser(ctx, "bob-canary-user", e)
		}, nil},
		"prune": {func(ctx context.Context, s *Store, e store.DeleteOptions) (store.DeleteResult, error) {
			return s.PruneSessions(ctx, store.PruneOptions{Now: e.Now, User: "bob-canary-user", OlderThan: time.Hour, DryRun: e.DryRun})
		}, all[:4]},
	} {
		t.Run(name, func(t *testing.T) {
			s := openWithTrajectories(t)
			addTraces(t, s, "alice")
			addTraces(t, s, "bob")
			addTrajectories(t, s, "bob", "elsewhere") // where no process has started a session
			// What was forked from the session and goes with it is not what is tested.
			if _, err := s.DeleteRun(t.Context(), "bob-canary-fork", later); err != nil {
				t.Fatal(err)
			}
			gone, err := x.erase(t.Context(), s, store.DeleteOptions{Now: later.Now, DryRun: true})
			if err != nil || gone.Trajectories != len(all)-len(x.left) || !slices.Equal(trajectoriesOf(t, s, "bob-canary-user"), all) {
				t.Errorf("it would delete %+v, %v, and there are %v", gone, err, trajectoriesOf(t, s, "bob-canary-user"))
			}
			gone, err = x.erase(t.Context(), s, later)
			if err != nil || gone.Trajectories != len(all)-len(x.left) || !slices.Equal(trajectoriesOf(t, s, "bob-canary-user"), x.left) {
				t.Errorf("deleted %+v, %v, and there are %v", gone, err, trajectoriesOf(t, s, "bob-canary-user"))
			}
			if got := trajectoriesOf(t, s, "alice-canary-user"); len(got) != 4 {
				t.Errorf("of the other's there are %v", got)
			}
		})
	}
}

func TestDeletingARunKeepsTrajectoryOfSameNamedSession(t *testing.T) {
	s := openWithTrajectories(t)
	ctx := t.Context()
	at := time.UnixMilli(1)
	k := trajectory.Key{User: "ann", Session: "same", Round: 1}
	if err := errors.Join(
		s.CreateSession(ctx, store.NewSession{ID: "same", User: "ann", Flow: "f", Thread: "t", Now: at}),
		s.Create(ctx, store.NewRun{ID: "same", Flow: "f", At: at}),
		tables.New(s.Trajectories()).Save(ctx, trajectorytest.Sample(t, k, 0)),
	); err != nil {
		t.Fatal(err)
	}
	gone, err := s.DeleteRun(ctx, "same", store.DeleteOptions{Now: time.Now()})
	if err != nil || gone.Runs != 1 || gone.Trajectories != 0 || len(trajectoriesOf(t, s, "ann")) != 1 {
		t.Errorf("deleted %+v, %v", gone, err)
	}
}

func TestTrajectoriesOfLiveProcessesAreKept(t *testing.T) {
	s := openWithTrajectories(t)
	addTraces(t, s, "bob")
	if _, err := s.Acquire(t.Context(), "bob-canary-child", "me", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteUser(t.Context(), "bob-canary-user", store.DeleteOptions{Now: time.Now()}); !errors.Is(err, store.ErrOwned) {
		t.Errorf("got %v", err)
	}
	if got := trajectoriesOf(t, s, "bob-canary-user"); len(got) != 4 {
		t.Errorf("there are %v", got)
	}
}

func TestDeletingATrajectoryLeavesNoBytesInTheFiles(t *testing.T) {
	for name, erase := range map[string]func(ctx context.Context, s *Store) (int, error){
		"tables": func(ctx context.Context, s *Store) (int, error) {
			user := "bob-canary-user"
			return s.Trajectories().Delete(ctx, trajectory.Filter{User: &user})
		},
		"user without a session": func(ctx context.Context, s *Store) (int, error) {
			e, err := s.DeleteUser(ctx, "bob-canary-user", store.DeleteOptions{Now: time.Now()})
			return e.Trajectories, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
			other := openAt(t, s.path, Options{}) // another process keeps the log
			addTrajectories(t, s, "alice", "session", "elsewhere")
			addTrajectories(t, s, "bob", "session", "elsewhere")
			if n := traces(t, s, "bob-canary"); n["-wal"] < 100 {
				t.Fatalf("the test leaves few traces: %v", n)
			}
			if n, err := erase(t.Context(), s); err != nil || n != 4 {
				t.Fatalf("deleted %d rounds, %v", n, err)
			}
			if n := traces(t, s, "bob-canary"); len(n) > 0 {
				t.Errorf("traces are left: %v", n)
			}
			if n := traces(t, s, "alice-canary"); n[""] < 100 {
				t.Errorf("the other's are gone: %v", n)
			}
			in := tables.New(other.Trajectories())
			k := trajectory.Key{User: "alice-canary-user", Session: "alice-canary-session", Round: 1}
			if r, err := in.Load(t.Context(), k); err != nil || !reflect.DeepEqual(r, testRecord(t, k, "alice", 1)) {
				t.Errorf("the other's is not as it was: %v", err)
			}
			addTrajectories(t, other, "bob", "session")
		})
	}
}

func TestTrajectoryDeletionReportsBackups(t *testing.T) {
	s := openWithTrajectories(t)
	addTrajectories(t, s, "bob", "session", "elsewhere")
	copied := s.path + ".v1.backup"
	if err := os.WriteFile(copied, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone, err := s.DeleteUser(t.Context(), "bob-canary-user", store.DeleteOptions{Now: time.Now()})
	if err != nil || !slices.Equal(gone.Copies, []string{copied}) {
		t.Errorf("deleted %+v, %v", gone, err)
	}
}
