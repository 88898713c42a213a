package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// ofRound joins the rows n of a table to the rounds r that they are of.
const ofRound = "n.session = r.session AND n.user = r.user AND n.sub = r.sub AND n.round = r.round"

// timeText is how times of nodes are kept: in their order as texts, and as
// SQLite's functions read them.
const timeText = "2006-01-02T15:04:05.000000000Z"

func parseTime(text string) (time.Time, error) { return time.Parse(timeText, text) }

// whereRound returns the condition of a filter on rounds r.
func whereRound(f trajectory.Filter) (where string, args []any) {
	add := func(column string, value any) {
		where += cmp.Or(strings.Repeat(" AND ", min(len(args), 1)), " WHERE ") + "r." + column + " = ?"
		args = append(args, value)
	}
	if f.User != nil {
		add("user", *f.User)
	}
	if f.Session != nil {
		add("session", *f.Session)
	}
	if f.Sub != nil {
		add("sub", *f.Sub)
	}
	if f.Round != nil {
		add("round", *f.Round)
	}
	return where, args
}

// query reads rows of a query that is put together, which is not kept prepared. There
// are none if there are no tables.
func (t trajectories) query(ctx context.Context, op string, scan func(row scanner) error, query string, args ...any) error {
	there, err := t.s.hasTrajectoryTables(ctx, t.s.reader.DB)
	if there && err == nil {
		err = lineage{ctx, t.s.reader.DB}.query(scan, query, args...)
	}
	return t.s.wrap(op, err)
}

// Rounds returns the keys that fit the filter.
func (t trajectories) Rounds(ctx context.Context, f trajectory.Filter) (out []trajectory.Key, err error) {
	query, args := roundsQuery(f)
	err = t.query(ctx, "list trajectories", func(row scanner) error {
		var k trajectory.Key
		err := row.Scan(&k.User, &k.Session, &k.Sub, &k.Round)
		out = append(out, k)
		return err
	}, query, args...)
	return out, err
}

func roundsQuery(f trajectory.Filter) (query string, args []any) {
	where, args := whereRound(f)
	return "SELECT r.user, r.session, r.sub, r.round FROM trajectory_round r" + where + " ORDER BY r.user, r.session, r.sub, r.round", args
}

// rowsOfRoundsQuery reads the rows of a table whose rounds fit a filter.
func rowsOfRoundsQuery(table, columns string, f trajectory.Filter) (query string, args []any) {
	where, args := whereRound(f)
	return "SELECT n." + strings.ReplaceAll(columns, ", ", ", n.") + " FROM trajectory_round r CROSS JOIN " + table + " n ON " + ofRound +
		where + " ORDER BY r.user, r.session, r.sub, r.round, n.seq", args
}

// Nodes returns the rows of one type whose rounds fit the filter.
func (t trajectories) Nodes(ctx context.Context, typ trajectory.Type, f trajectory.Filter) (out []tables.Node, err error) {
	if !typ.IsValid() {
		return nil, fmt.Errorf("nodes of trajectories: %q: %w", string(typ), trajectory.ErrUnknownType)
	}
	query, args := rowsOfRoundsQuery(tables.NodeTable(typ), nodeColumns, f)
	err = t.query(ctx, "nodes of trajectories", func(row scanner) error {
		var n tables.Node
		var created string
		err := row.Scan(&n.User, &n.Session, &n.Round, &n.Sub, &n.ID, &n.Seq, &n.Name, &n.Description, &n.Attributes,
			&n.Run, &n.Path, &n.Agent, &n.Author, &created, &n.Version, &n.History)
		if err == nil {
			n.Created, err = parseTime(created)
		}
		out = append(out, n)
		return err
	}, query, args...)
	return out, err
}

// Edges returns the edges whose rounds fit the filter.
func (t trajectories) Edges(ctx context.Context, f trajectory.Filter) (out []tables.Edge, err error) {
	query, args := rowsOfRoundsQuery(tables.EdgeTable, edgeColumns, f)
	err = t.query(ctx, "edges of trajectories", func(row scanner) error {
		var e tables.Edge
		err := row.Scan(&e.User, &e.Session, &e.Round, &e.Sub, &e.Source, &e.Target, &e.Relationship, &e.Seq)
		out = append(out, e)
		return err
	}, query, args...)
	return out, err
}

const selectNear = `SELECT
	coalesce((SELECT max(round) FROM trajectory_round WHERE user = ?1 AND session = ?2 AND sub = ?3 AND round < ?4), 0),
	coalesce((SELECT min(round) FROM trajectory_round WHERE user = ?1 AND session = ?2 AND sub = ?3 AND round > ?4), 0)`

// Adjacent returns the rounds of the key's agent next to its round.
func (t trajectories) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	there, err := t.s.hasTrajectoryTables(ctx, t.s.reader.DB)
	if there && err == nil {
		err = t.s.reader.QueryRowContext(ctx, selectNear, k.User, k.Session, k.Sub, k.Round).Scan(&before, &after)
	}
	return before, after, t.s.wrap("rounds next to "+k.String(), err)
}

// rowsQuery reads all rows of a round in one statement, which sees one state of
// the file. The first column says what a row is: a table's name.
func rowsQuery() string {
	const key = " WHERE user = ?1 AND session = ?2 AND sub = ?3 AND round = ?4"
	parts := []string{
		"SELECT 'trajectory_round', 0, agent, initial_pt, current_pt, first, messages, '', '', '', '', 0, '' FROM trajectory_round" + key,
		"SELECT 'trajectory_edge', seq, source, target, relationship, '', '', '', '', '', '', 0, '' FROM trajectory_edge" + key,
	}
	for _, t := range trajectory.Types() {
		parts = append(parts, "SELECT '"+string(t)+"', seq, id, name, description, attributes, run, path, agent, author, created, version, history FROM "+
			tables.NodeTable(t)+key)
	}
	return strings.Join(parts, "\nUNION ALL ")
}

// Rows returns the rows of a round, or trajectory.ErrNotFound.
func (t trajectories) Rows(ctx context.Context, k trajectory.Key) (tables.Rows, error) {
	op := "trajectory of " + k.String()
	there, err := t.s.hasTrajectoryTables(ctx, t.s.reader.DB)
	if err != nil {
		return tables.Rows{}, t.s.wrap(op, err)
	}
	r := roundRows{key: k, rows: tables.Rows{Nodes: map[trajectory.Type][]tables.Node{}, Edges: []tables.Edge{}}}
	if there {
		err = t.s.query(ctx, r.scan, rowsQuery(), k.User, k.Session, k.Sub, k.Round)
	}
	if err == nil && !r.found {
		return tables.Rows{}, fmt.Errorf("%s: %w", op, trajectory.ErrNotFound)
	}
	if err != nil {
		return tables.Rows{}, t.s.wrap(op, err)
	}
	for _, list := range r.rows.Nodes { // order: each is sorted
		slices.SortFunc(list, func(a, b tables.Node) int { return a.Seq - b.Seq })
	}
	slices.SortFunc(r.rows.Edges, func(a, b tables.Edge) int { return a.Seq - b.Seq })
	return r.rows, nil
}

// roundRows takes the rows of rowsQuery.
type roundRows struct {
	key   trajectory.Key
	rows  tables.Rows
	found bool
}

func (r *roundRows) scan(row scanner) error {
	var what, created string
	n := tables.Node{User: r.key.User, Session: r.key.Session, Round: r.key.Round, Sub: r.key.Sub}
	err := row.Scan(&what, &n.Seq, &n.ID, &n.Name, &n.Description, &n.Attributes, &n.Run, &n.Path, &n.Agent, &n.Author,
		&created, &n.Version, &n.History)
	switch {
	case err != nil:
		return err
	case what == tables.RoundTable:
		r.found = true
		r.rows.Round = tables.Round{
			User: n.User, Session: n.Session, Round: n.Round, Sub: n.Sub,
			Agent: n.ID, InitialPt: n.Name, CurrentPt: n.Description, First: n.Attributes, Messages: n.Run,
		}
	case what == tables.EdgeTable:
		r.rows.Edges = append(r.rows.Edges, tables.Edge{
			User: n.User, Session: n.Session, Round: n.Round, Sub: n.Sub,
			Source: n.ID, Target: n.Name, Relationship: n.Description, Seq: n.Seq,
		})
	default:
		n.Created, err = parseTime(created)
		typ := trajectory.Type(what)
		r.rows.Nodes[typ] = append(r.rows.Nodes[typ], n)
	}
	return err
}
