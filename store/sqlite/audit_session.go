package sqlite

import (
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/rowaudit"
)

// sessionChangesOfRun narrows session_change to the rows of a run.
const sessionChangesOfRun = " WHERE run = ?1 AND id >> 32 = (SELECT session FROM run_row WHERE num = ?1)"

// checkSessionState compares what the run changed of the state of its session with what its
// journal says.
func (a *runAudit) checkSessionState() error {
	var rows []rowaudit.StateChange
	err := a.sealedRows("session_change", sessionChangesOfRun+" ORDER BY id", func(r *sealedRow) error {
		row := r.facts.(*changeFacts)
		c := rowaudit.StateChange{Key: row.Key, Reducer: row.Reducer, Sender: row.Sender, Round: row.Round, At: row.At}
		if row.Value != nil {
			c.Value = []byte(*row.Value)
		}
		rows = append(rows, c)
		return nil
	}, a.Chain.Number)
	if err != nil {
		return err
	}
	return a.CompareStateChanges(rows)
}

// checkSessionChanges finds sessions whose state does not have as many changes as they say,
// or whose changes are not numbered without gaps.
func (a *databaseAudit) checkSessionChanges() error {
	return a.query(func(row scanner) error {
		var id string
		var says, has, last int64
		err := row.Scan(&id, &says, &has, &last)
		if err == nil {
			a.addFinding(store.FoundChanged, "session %s says that its state has had %d changes, and there are %d, of which the last is number %d", id, says, has, last)
		}
		return err
	}, `SELECT id, says, has, last FROM (SELECT s.id, coalesce(s.changes, 0) AS says,
			(SELECT count(*) FROM session_change c WHERE c.id > s.num << 32 AND c.id < (s.num + 1) << 32) AS has,
			coalesce((SELECT max(id) & 0xffffffff FROM session_change c WHERE c.id > s.num << 32 AND c.id < (s.num + 1) << 32), 0) AS last FROM session s)
		WHERE says <> has OR has <> last`)
}
