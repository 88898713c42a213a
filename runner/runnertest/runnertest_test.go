package runnertest_test

import (
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/runner/runnertest"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
)

func TestLocalOnMemory(t *testing.T) {
	runnertest.Run(t, runnertest.Local(func(*testing.T) runnertest.Store { return memory.New() }))
}

func TestLocalOnSQLite(t *testing.T) {
	runnertest.Run(t, runnertest.Local(func(t *testing.T) runnertest.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}))
}

func TestSim(t *testing.T) {
	for seed := range uint64(3) {
		runnertest.Run(t, runnertest.Sim(seed))
	}
}
