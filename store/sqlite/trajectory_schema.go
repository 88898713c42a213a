package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"sync/atomic"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// trajectoryState is what a store remembers of its tables of trajectories.
type trajectoryState struct {
	exist atomic.Bool          // they are there
	stmts map[string]*sql.Stmt // on the writer's connection, by table; the store's mu
}

func (t *trajectoryState) close() {
	for _, s := range t.stmts {
		_ = s.Close() // the connection is closed next
	}
}

// The columns of each table, in the order in which values are given and read.
const (
	roundColumns = "user, session, round, sub, agent, initial_pt, current_pt, first, messages"
	nodeColumns  = "user, session, round, sub, id, seq, name, description, attributes, run, path, agent, author, created, version, history"
	edgeColumns  = "user, session, round, sub, source, target, relationship, seq"
)

// trajectoryTables returns all of them, and the columns of each.
func trajectoryTables() map[string]string {
	out := map[string]string{tables.RoundTable: roundColumns, tables.EdgeTable: edgeColumns}
	for _, t := range trajectory.Types() {
		out[tables.NodeTable(t)] = nodeColumns
	}
	return out
}

// trajectorySchema makes what is not there yet. Rows are found by session, by user
// and by their keys; rounds also by their numbers, and what belongs to them with
// them.
func trajectorySchema() []string {
	out := []string{
		`CREATE TABLE IF NOT EXISTS trajectory_round (
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    round INTEGER NOT NULL,
    sub INTEGER NOT NULL,     -- 0 is the main agent
    agent TEXT NOT NULL,      -- path of the sub-agent in the flow
    initial_pt TEXT NOT NULL, -- id of a node
    current_pt TEXT NOT NULL, -- ids, a JSON list
    first TEXT NOT NULL,      -- numbers that ids begin at, a JSON object by type
    messages TEXT NOT NULL,   -- a JSON list
    PRIMARY KEY (user, session, sub, round)
)`,
		"CREATE INDEX IF NOT EXISTS trajectory_round_session ON trajectory_round (session, user, sub, round)",
		"CREATE INDEX IF NOT EXISTS trajectory_round_round ON trajectory_round (round)",
		"CREATE INDEX IF NOT EXISTS trajectory_round_sub ON trajectory_round (sub)",
		`CREATE TABLE IF NOT EXISTS trajectory_edge (
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    round INTEGER NOT NULL,
    sub INTEGER NOT NULL,
    source TEXT NOT NULL, -- id of a node
    target TEXT NOT NULL, -- id of a node
    relationship TEXT NOT NULL,
    seq INTEGER NOT NULL, -- its place in the round
    PRIMARY KEY (session, user, sub, round, source, target)
)`,
		"CREATE INDEX IF NOT EXISTS trajectory_edge_user ON trajectory_edge (user)",
	}
	for _, t := range trajectory.Types() {
		name := tables.NodeTable(t)
		out = append(out, `CREATE TABLE IF NOT EXISTS `+name+` (
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    round INTEGER NOT NULL,
    sub INTEGER NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL, -- its place among all nodes of the round
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    attributes TEXT NOT NULL, -- a JSON object
    run TEXT NOT NULL,        -- run, path, agent and author: who made it
    path TEXT NOT NULL,
    agent TEXT NOT NULL,
    author TEXT NOT NULL,
    created TEXT NOT NULL,    -- UTC, to the nanosecond
    version INTEGER NOT NULL,
    history TEXT NOT NULL,    -- what each earlier version had, a JSON object
    PRIMARY KEY (session, user, sub, round, id)
)`, "CREATE INDEX IF NOT EXISTS "+name+"_user ON "+name+" (user)")
	}
	return out
}

const selectTrajectoryTables = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'trajectory_round')"

// hasTrajectoryTables reports whether the tables are there. They are made together.
func (s *Store) hasTrajectoryTables(ctx context.Context, q querier) (there bool, err error) {
	if s.trajectoryTables.exist.Load() {
		return true, nil
	}
	err = q.QueryRowContext(ctx, selectTrajectoryTables).Scan(&there)
	if there {
		s.trajectoryTables.exist.Store(true)
	}
	return there, err
}

// createTrajectoryTables makes the tables, in the transaction that writes to them first.
func (s *Store) createTrajectoryTables(ctx context.Context) error {
	if there, err := s.hasTrajectoryTables(ctx, s.conn); there || err != nil {
		return err
	}
	for _, query := range trajectorySchema() {
		if _, err := s.conn.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// insertTrajectoryRow inserts a row of a table; the statement is prepared once.
func (s *Store) insertTrajectoryRow(ctx context.Context, table, columns string, values ...any) error {
	stmt := s.trajectoryTables.stmts[table]
	if stmt == nil {
		var err error
		stmt, err = s.conn.PrepareContext(ctx, insertInto(table, columns, len(values)))
		if err != nil {
			return err
		}
		if s.trajectoryTables.stmts == nil {
			s.trajectoryTables.stmts = map[string]*sql.Stmt{}
		}
		s.trajectoryTables.stmts[table] = stmt
	}
	_, err := stmt.ExecContext(ctx, values...)
	return err
}

func insertInto(table, columns string, values int) string {
	return "INSERT INTO " + table + " (" + columns + ") VALUES (" + strings.Repeat(", ?", values)[2:] + ")"
}
