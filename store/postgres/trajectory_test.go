//go:build unix

package postgres

import (
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

func TestTrajectoriesAreStoredInTables(t *testing.T) {
	server := pgtest.Start(t)
	open := func(t *testing.T) tables.Tables {
		t.Helper()
		return openAt(t, server.Schema(t), Options{MaxConnections: 4}).Trajectories()
	}
	trajectorytest.Run(t, func(t *testing.T) trajectory.Storage {
		t.Helper()
		return tables.New(open(t))
	})
	trajectorytest.RunTables(t, open)
}
