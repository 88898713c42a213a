package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// TestKilledProcessesLoseAndRepeatNoStateOfTheirUser has three processes talk at the same
// time, each in a session of its own, for one user, and kills them anywhere. The state of the
// user then has every round once. Forks change nothing, deleting a session leaves the state,
// and erasing the user removes it.
func TestKilledProcessesLoseAndRepeatNoStateOfTheirUser(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	openSession(t, path)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"parrot": echoModel{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	rounds := max(*roundsEach/2, 4)
	var wg sync.WaitGroup
	speakers := []string{"anna", "bert", "cyd"}
	for n, who := range speakers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 5))
			for from := 0; from < rounds; {
				from = sendRoundsIn(t, path, who, "of-"+who, from, rounds, 1+rng.IntN(10))
			}
		})
	}
	wg.Wait()
	heard := map[any]int{}
	values, err := w.UserState(t.Context(), "u")
	if err != nil || len(values) != 3 {
		t.Fatal(values, err)
	}
	for _, text := range values[1].Value.([]any) {
		heard[text]++
	}
	for _, who := range speakers {
		for i := range rounds {
			if n := heard[fmt.Sprintf("%s-%d", who, i)]; n != 1 {
				t.Errorf("%s-%d is in the state of the user %d times", who, i, n)
			}
		}
	}
	total := int64(rounds * len(speakers))
	longest := int64(len(fmt.Sprintf("anna-%d", rounds-1)))
	if values[0].Value != total || int64(len(heard)) != total || values[2].Value != longest || values[0].Version != total {
		t.Errorf("after %d rounds the user has %+v", total, values)
	}
	checkForksKeepUserState(t, w, values)
	if _, err := w.DeleteUser(t.Context(), "u", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if left, err := w.UserState(t.Context(), ""); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
}

// checkForksKeepUserState forks a round to its end and deletes a session: both leave the
// state of the user.
func checkForksKeepUserState(t *testing.T, w *weir.Weir, before []store.UserValue) {
	t.Helper()
	run, _, err := w.Fork(t.Context(), before[0].Run, weir.ForkOptions{From: "count"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.Status.String() != "completed" {
		t.Fatal(r, err)
	}
	rows, err := w.Sessions(t.Context(), store.SessionFilter{User: "u"})
	if err != nil || len(rows) == 0 {
		t.Fatal(rows, err)
	}
	for i := range rows {
		if _, err := w.DeleteSession(t.Context(), rows[i].ID, store.DeleteOptions{DeferCompaction: true}); err != nil {
			t.Fatal(err)
		}
	}
	after, err := w.UserState(t.Context(), "u")
	if err != nil || len(after) != len(before) || after[0].Value != before[0].Value || after[0].Version != before[0].Version || after[0].Run != "" {
		t.Errorf("%+v, before %+v: %v", after, before, err)
	}
}
