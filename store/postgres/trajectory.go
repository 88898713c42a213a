package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
)

// Trajectories returns the tables of trajectories, which are closed with the store.
func (s *Store) Trajectories() tables.Tables { return trajectories{s} }

// trajectories are the tables of a store. The rows of a round refer to its row in trajectory_round and go with it.
type trajectories struct{ s *Store }

// timeText is the form of the times of nodes: texts in the order of the times.
const timeText = "2006-01-02T15:04:05.000000000Z"

const (
	roundColumns = "agent, initial_pt, current_pt, first, messages"
	nodeColumns  = "id, seq, name, description, attributes, run_id, path, agent, author, created, version, history"
	edgeColumns  = "source, target, relationship, seq"
)

func keyArgs(k trajectory.Key) []any {
	return []any{text(k.User), text(k.Session), k.Round, k.Sub}
}

const atKey = "user_id = $1 AND session = $2 AND round = $3 AND sub = $4"

// Replace replaces the rows of a round.
func (x trajectories) Replace(ctx context.Context, r tables.Rows) error {
	return x.s.write(ctx, "store trajectory of "+r.Key().String(), func(t *tx) error {
		var owner int64
		round := &r.Round
		key, err := t.dataKey(r.Key().User)
		if err != nil {
			return err
		}
		err = t.queryRow([]any{&owner}, `INSERT INTO trajectory_round (user_id, session, round, sub, `+roundColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (user_id, session, sub, round) DO UPDATE SET agent = excluded.agent, initial_pt = excluded.initial_pt,
				current_pt = excluded.current_pt, first = excluded.first, messages = excluded.messages RETURNING num`,
			append(keyArgs(r.Key()), text(round.Agent), text(round.InitialPt), text(round.CurrentPt),
				t.s.encodeText(key, round.First), t.s.encodeText(key, round.Messages))...)
		if err != nil {
			return err
		}
		encode := func(plain string) string { return t.s.encodeText(key, plain) }
		for _, table := range rowTables() {
			t.queue("DELETE FROM "+table+" WHERE owner = $1", owner)
		}
		for _, typ := range trajectory.Types() {
			for _, n := range r.Nodes[typ] {
				t.queue("INSERT INTO "+tables.NodeTable(typ)+" (owner, "+nodeColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
					owner, text(n.ID), n.Seq, encode(n.Name), encode(n.Description), encode(n.Attributes), text(n.Run), text(n.Path), text(n.Agent),
					text(n.Author), n.Created.UTC().Format(timeText), n.Version, encode(n.History))
			}
		}
		for _, e := range r.Edges {
			t.queue("INSERT INTO trajectory_edge (owner, "+edgeColumns+") VALUES ($1, $2, $3, $4, $5)",
				owner, text(e.Source), text(e.Target), text(e.Relationship), e.Seq)
		}
		return nil
	})
}

// rowTables are the tables of what a round has.
func rowTables() []string {
	out := []string{tables.EdgeTable}
	for _, typ := range trajectory.Types() {
		out = append(out, tables.NodeTable(typ))
	}
	return out
}

// whereRound is the condition of a filter on rounds r.
func whereRound(f trajectory.Filter) (where string, args []any) {
	add := func(column string, value any) {
		args = append(args, value)
		where += cmp.Or(strings.Repeat(" AND ", min(len(args)-1, 1)), " WHERE ") + fmt.Sprintf("r.%s = $%d", column, len(args))
	}
	if f.User != nil {
		add("user_id", text(*f.User))
	}
	if f.Session != nil {
		add("session", text(*f.Session))
	}
	if f.Sub != nil {
		add("sub", *f.Sub)
	}
	if f.Round != nil {
		add("round", *f.Round)
	}
	return where, args
}

const (
	roundKey    = "r.user_id, r.session, r.round, r.sub"
	roundsOrder = " ORDER BY r.user_id, r.session, r.sub, r.round"
)

// Rounds returns the keys that fit the filter.
func (x trajectories) Rounds(ctx context.Context, f trajectory.Filter) (out []trajectory.Key, err error) {
	where, args := whereRound(f)
	err = x.s.query(ctx, func(row pgx.Row) error {
		var k trajectory.Key
		err := row.Scan(into(&k.User), into(&k.Session), &k.Round, &k.Sub)
		out = append(out, k)
		return err
	}, "SELECT "+roundKey+" FROM trajectory_round r"+where+roundsOrder, args...)
	return out, x.s.wrap("list trajectories", err)
}

// rowsOf reads the rows of a table whose rounds fit a condition.
func rowsOf(table, columns, where string) string {
	return "SELECT " + roundKey + ", n." + strings.ReplaceAll(columns, ", ", ", n.") + " FROM trajectory_round r JOIN " + table + " n ON n.owner = r.num" +
		where + roundsOrder + ", n.seq"
}

func scanNode(row pgx.Row) (n tables.Node, err error) {
	var created string
	err = row.Scan(into(&n.User), into(&n.Session), &n.Round, &n.Sub, into(&n.ID), &n.Seq, into(&n.Name), into(&n.Description), into(&n.Attributes),
		into(&n.Run), into(&n.Path), into(&n.Agent), into(&n.Author), &created, &n.Version, into(&n.History))
	if err == nil {
		n.Created, err = time.Parse(timeText, created)
	}
	return n, err
}

func scanEdge(row pgx.Row) (e tables.Edge, err error) {
	err = row.Scan(into(&e.User), into(&e.Session), &e.Round, &e.Sub, into(&e.Source), into(&e.Target), into(&e.Relationship), &e.Seq)
	return e, err
}

// Nodes returns the rows of one type whose rounds fit the filter.
func (x trajectories) Nodes(ctx context.Context, typ trajectory.Type, f trajectory.Filter) (out []tables.Node, err error) {
	if !typ.IsValid() {
		return nil, fmt.Errorf("nodes of trajectories: %q: %w", string(typ), trajectory.ErrUnknownType)
	}
	where, args := whereRound(f)
	err = x.s.query(ctx, func(row pgx.Row) error {
		n, err := scanNode(row)
		out = append(out, n)
		return err
	}, rowsOf(tables.NodeTable(typ), nodeColumns, where), args...)
	return out, x.s.wrap("nodes of trajectories", err)
}

// Edges returns the edges whose rounds fit the filter.
func (x trajectories) Edges(ctx context.Context, f trajectory.Filter) (out []tables.Edge, err error) {
	where, args := whereRound(f)
	err = x.s.query(ctx, func(row pgx.Row) error {
		e, err := scanEdge(row)
		out = append(out, e)
		return err
	}, rowsOf(tables.EdgeTable, edgeColumns, where), args...)
	return out, x.s.wrap("edges of trajectories", err)
}

// Adjacent returns the rounds of the key's agent next to its round.
func (x trajectories) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	err = x.s.queryRow(ctx, []any{&before, &after}, `SELECT
		coalesce((SELECT max(round) FROM trajectory_round WHERE user_id = $1 AND session = $2 AND sub = $4 AND round < $3), 0),
		coalesce((SELECT min(round) FROM trajectory_round WHERE user_id = $1 AND session = $2 AND sub = $4 AND round > $3), 0)`, keyArgs(k)...)
	return before, after, x.s.wrap("rounds next to "+k.String(), err)
}

// Rows returns the rows of a round as of one moment, or trajectory.ErrNotFound.
func (x trajectories) Rows(ctx context.Context, k trajectory.Key) (tables.Rows, error) {
	op := "trajectory of " + k.String()
	var out tables.Rows
	err := x.s.readSnapshot(ctx, func(t *tx) error {
		out = tables.Rows{Nodes: map[trajectory.Type][]tables.Node{}, Edges: []tables.Edge{}}
		r := &out.Round
		r.User, r.Session, r.Round, r.Sub = k.User, k.Session, k.Round, k.Sub
		var owner int64
		err := t.queryRow([]any{&owner, into(&r.Agent), into(&r.InitialPt), into(&r.CurrentPt), into(&r.First), into(&r.Messages)},
			"SELECT num, "+roundColumns+" FROM trajectory_round WHERE "+atKey, keyArgs(k)...)
		if err != nil {
			return err
		}
		const where = " WHERE r.num = $1"
		for _, typ := range trajectory.Types() {
			t.batch.Queue(rowsOf(tables.NodeTable(typ), nodeColumns, where), owner).Query(func(rows pgx.Rows) error {
				return x.s.eachRow(ctx, t, rows, func(row pgx.Row) error {
					n, err := scanNode(row)
					out.Nodes[typ] = append(out.Nodes[typ], n)
					return err
				})
			})
		}
		return t.query(func(row pgx.Row) error {
			e, err := scanEdge(row)
			out.Edges = append(out.Edges, e)
			return err
		}, rowsOf(tables.EdgeTable, edgeColumns, where), owner)
	})
	err = x.s.wrap(op, err)
	if isNotFound(err) {
		err = fmt.Errorf("%s: %w", op, trajectory.ErrNotFound)
	}
	if err != nil {
		return tables.Rows{}, err
	}
	return out, nil
}

// Delete deletes the rows of the rounds that fit the filter.
func (x trajectories) Delete(ctx context.Context, f trajectory.Filter) (n int, err error) {
	where, args := whereRound(f)
	var out store.DeleteResult
	err = x.s.write(ctx, "delete trajectories", func(t *tx) (err error) {
		out.Trajectories, err = t.deleteTrajectories(where, args...)
		return err
	})
	out, err = x.s.afterDeletion(ctx, out, err, false)
	return out.Trajectories, err
}

// deleteTrajectories deletes rounds r with their rows, and returns how many they were.
func (t *tx) deleteTrajectories(where string, args ...any) (int, error) {
	nums, err := t.numbers("SELECT r.num FROM trajectory_round r"+where+" ORDER BY r.num FOR UPDATE", args...)
	if err != nil || len(nums) == 0 {
		return 0, err
	}
	for _, table := range rowTables() {
		t.queue("DELETE FROM "+table+" WHERE owner = ANY($1)", nums)
	}
	t.queue("DELETE FROM trajectory_round WHERE num = ANY($1)", nums)
	t.markDeletion()
	return len(nums), nil
}
