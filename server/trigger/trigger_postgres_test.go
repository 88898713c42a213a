//go:build unix

package trigger_test

import (
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
)

func TestSeveralProcessesOnPostgreSQLStartOneRunForEachFiring(t *testing.T) {
	t.Parallel()
	testSeveralProcesses(t, pgtest.Start(t).Schema(t))
}

func TestSeveralProcessesOnPostgreSQLStartOneRunForEachFile(t *testing.T) {
	t.Parallel()
	testProcessesOnFolder(t, pgtest.Start(t).Schema(t))
}
