package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// Trajectories returns the tables of trajectories. They are created when the first round is
// stored.
func (s *Store) Trajectories() tables.Tables { return trajectories{s} }

// trajectories are the tables of a store.
type trajectories struct{ s *Store }

// Replace stores the rows of a round in place of those that were there, and makes
// the tables if there are none.
func (t trajectories) Replace(ctx context.Context, r tables.Rows) error {
	s := t.s
	err := s.write(ctx, "store trajectory of "+r.Key().String(), func(ctx context.Context) error {
		if err := s.createTrajectoryTables(ctx); err != nil {
			return err
		}
		if err := s.deleteTrajectoryRows(ctx, r.Key()); err != nil {
			return err
		}
		return s.insertTrajectoryRows(ctx, r)
	})
	if err == nil {
		s.trajectoryTables.exist.Store(true)
	}
	return err
}

// deleteTrajectoryRows deletes the rows of a round.
func (s *Store) deleteTrajectoryRows(ctx context.Context, k trajectory.Key) error {
	key := []any{k.User, k.Session, k.Sub, k.Round}
	res, err := s.conn.ExecContext(ctx, deleteOfRound(tables.RoundTable), key...)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(trajectoryTables())) {
		if table == tables.RoundTable {
			continue
		}
		if _, err := s.conn.ExecContext(ctx, deleteOfRound(table), key...); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	return nil
}

// deleteOfRound deletes the rows of a table that are of one round.
func deleteOfRound(table string) string {
	return "DELETE FROM " + table + " WHERE user = ? AND session = ? AND sub = ? AND round = ?"
}

// insertTrajectoryRows inserts the rows of a round.
func (s *Store) insertTrajectoryRows(ctx context.Context, r tables.Rows) error {
	round := r.Round
	err := s.insertTrajectoryRow(ctx, tables.RoundTable, roundColumns, round.User, round.Session, round.Round, round.Sub, round.Agent,
		round.InitialPt, round.CurrentPt, round.First, round.Messages)
	if err != nil {
		return err
	}
	for _, typ := range trajectory.Types() {
		for _, n := range r.Nodes[typ] {
			err := s.insertTrajectoryRow(ctx, tables.NodeTable(typ), nodeColumns, n.User, n.Session, n.Round, n.Sub, n.ID, n.Seq, n.Name, n.Description,
				n.Attributes, n.Run, n.Path, n.Agent, n.Author, n.Created.UTC().Format(timeText), n.Version, n.History)
			if err != nil {
				return fmt.Errorf("%s: %w", n.ID, err)
			}
		}
	}
	for _, e := range r.Edges {
		err := s.insertTrajectoryRow(ctx, tables.EdgeTable, edgeColumns, e.User, e.Session, e.Round, e.Sub, e.Source, e.Target, e.Relationship, e.Seq)
		if err != nil {
			return fmt.Errorf("%s -> %s: %w", e.Source, e.Target, err)
		}
	}
	return nil
}

// Delete deletes the rows of the rounds that match the filter, as DeleteSession does: no byte
// of them remains in the file or its log.
func (t trajectories) Delete(ctx context.Context, f trajectory.Filter) (n int, err error) {
	const op = "delete trajectories"
	where, args := whereRound(f)
	err = t.s.secureDelete(ctx, op, func(ctx context.Context) error {
		x := deleter{lineage: lineage{ctx, t.s.conn}, s: t.s, conn: t.s.conn}
		n, err = x.deleteTrajectories(where, args...)
		return err
	})
	_, err = t.s.compactAfter(ctx, op, store.DeleteResult{}, err, n == 0 && t.s.compactionDeferred.Load())
	return n, err
}

// trajectoriesToDelete are the rounds that go with trees, whose roots are the first
// argument, a JSON list, and with a user, who is the second, NULL for none. A run
// that is of no session has its trajectory under its own id.
const trajectoriesToDelete = ` WHERE user = ?2 OR session IN (
	SELECT id FROM session WHERE num IN (SELECT -value FROM json_each(?1))
	UNION SELECT id FROM run d WHERE root IN (SELECT value FROM json_each(?1)) AND NOT EXISTS (SELECT 1 FROM session s WHERE s.id = d.id))`

// deleteUserOnly deletes the trajectories, the memory and the learned code of a user who has no sessions and
// runs.
func (x deleter) deleteUserOnly(dry bool) (out store.DeleteResult, err error) {
	do, forget, learned, values := x.deleteTrajectories, x.deleteMemories, x.deleteLearned, x.deleteUserState
	if dry {
		do, forget, learned, values = x.countTrajectories, x.countMemories, x.countLearned, x.countUserState
	}
	if out.Trajectories, err = do(trajectoriesToDelete, "[]", nullText(x.user)); err == nil {
		out.Memories, err = forget("[]")
	}
	if err == nil {
		out.Learned, err = learned("[]")
	}
	if err == nil {
		out.UserValues, err = values()
	}
	if err == nil && !dry {
		err = x.deleteAccess()
	}
	return out, err
}

// ofRounds reads something of rounds.
func ofRounds(what, where string) string {
	return "SELECT " + what + " FROM trajectory_round r" + where
}

func chooseRounds(where string) string { return "INSERT INTO doomed_round " + ofRounds("rowid", where) }

// countTrajectories counts rounds.
func (x deleter) countTrajectories(where string, args ...any) (n int, err error) {
	if there, err := x.s.hasTrajectoryTables(x.ctx, x.conn); !there || err != nil {
		return 0, err
	}
	err = x.q.QueryRowContext(x.ctx, ofRounds("count(*)", where), args...).Scan(&n)
	return n, err
}

// deleteTrajectories deletes rounds with all that is theirs, and returns how many they
// were.
func (x deleter) deleteTrajectories(where string, args ...any) (n int, err error) {
	if n, err = x.countTrajectories(where, args...); n == 0 || err != nil {
		return 0, err
	}
	queries := []string{}
	for _, table := range slices.Sorted(maps.Keys(trajectoryTables())) {
		if table != tables.RoundTable {
			queries = append(queries, deleteOfRounds(table))
		}
	}
	queries = append(queries,
		"DELETE FROM trajectory_round WHERE rowid IN (SELECT num FROM doomed_round)",
		"INSERT OR REPLACE INTO gone (name, num) VALUES ('traces', 1)", // until Compact
		"DROP TABLE doomed_round")
	if _, err := x.conn.ExecContext(x.ctx, "CREATE TEMP TABLE doomed_round (num INTEGER PRIMARY KEY)"); err != nil {
		return 0, err
	}
	if _, err := x.conn.ExecContext(x.ctx, chooseRounds(where), args...); err != nil {
		return 0, err
	}
	for _, query := range queries {
		if _, err := x.conn.ExecContext(x.ctx, query); err != nil {
			return 0, fmt.Errorf("%.40s: %w", query, err)
		}
	}
	return n, nil
}

// deleteOfRounds deletes the rows of a table that are of rounds in doomed_round.
func deleteOfRounds(table string) string {
	return "DELETE FROM " + table + ` WHERE rowid IN (SELECT n.rowid FROM doomed_round d
		CROSS JOIN trajectory_round r ON r.rowid = d.num CROSS JOIN ` + table + " n ON " + ofRound + ")"
}
