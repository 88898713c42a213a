package sqlite

import (
	"github.com/weir-run/weir/store"
)

// sessionChangesOfRun narrows session_change to the rows of a run.
const sessionChangesOfRun = " WHERE run = ?1 AND id >> 32 = (SELECT session FROM run_row WHERE num = ?1)"

// checkSessionState compares what the run changed of the state of its session with what its
// journal says.
func (a *runAudit) checkSessionState() error {
	rest := a.facts.Session
	if a.facts.Started == nil || a.facts.Started.Session == "" {
		rest = nil
	}
	err := a.sealedRows("session_change", sessionChangesOfRun+" ORDER BY id", func(r *sealedRow) error {
		row := r.facts.(*changeFacts)
		if len(rest) == 0 {
			a.addFinding(store.FoundAdded, "the change of the session's state key %q is not in the journal", row.Key)
			return nil
		}
		said := changeFacts{
			ID: row.ID, Key: rest[0].Key, Reducer: rest[0].Reducer, Round: int64(a.facts.Started.Round), Run: a.chain.Number, At: a.facts.SessionAt,
		}
		if !rest[0].Delete {
			value, err := encodeValue(rest[0].Value)
			if err != nil {
				return err
			}
			said.Value = &value
		}
		rest = rest[1:]
		same := row.Value == nil && said.Value == nil || row.Value != nil && said.Value != nil && *row.Value == *said.Value
		said.Value = row.Value
		if !same || *row != said {
			a.addFinding(store.FoundChanged, "the change of the session's state key %q is not what the journal says", row.Key)
		}
		return nil
	}, a.chain.Number)
	for _, c := range rest {
		a.addFinding(store.FoundMissing, "the change of the session's state key %q is missing", c.Key)
	}
	return err
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
