//go:build unix

package webhook_test

import (
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/postgres"
)

func TestSeveralProcessesOnPostgreSQLSendEachEventOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t).Schema(t)
	testSeveralSenders(t, func(c *clock) store.Store {
		s, err := postgres.Open(t.Context(), url, postgres.Options{Clock: c.time, MaxConnections: 3})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
