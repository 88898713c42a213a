package tables_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

func TestMemoryTables(t *testing.T) {
	t.Parallel()
	trajectorytest.Run(t, func(*testing.T) trajectory.Storage { return tables.New(tables.NewMemory()) })
}

func TestRowsAreFoundByTypeAndKey(t *testing.T) {
	t.Parallel()
	trajectorytest.RunTables(t, func(*testing.T) tables.Tables { return tables.NewMemory() })
}

func TestTablesAreNamedByTheTypeOfTheirNodes(t *testing.T) {
	t.Parallel()
	if got := tables.NodeTable(trajectory.Knowledge); got != "trajectory_knowledge" {
		t.Errorf("knowledge is in the table %s", got)
	}
}

func TestATimeThatNoTableCanKeepIsRefused(t *testing.T) {
	t.Parallel()
	r := trajectorytest.Sample(t, trajectory.Key{Session: "s", Round: 1}, 0)
	r.Nodes[0].Created = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := tables.New(tables.NewMemory()).Save(t.Context(), r); !errors.Is(err, trajectory.ErrRecord) {
		t.Errorf("got %v, want ErrRecord", err)
	}
}
