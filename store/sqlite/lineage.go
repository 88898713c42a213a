package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/rowaudit"
)

// A run with a base shares that run's first commits, and a context may begin
// with another's messages; nothing of either is copied. lineage finds where
// commits and messages lie.
type lineage struct {
	ctx context.Context //nolint:containedctx // lives as long as one call
	q   querier
}

// querier is the readers' pool or the writer's connection.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// sharedRange is a run whose commits, after from and up to upto, are commits of a run
// that shares them.
type sharedRange struct {
	num, from, upto int64
}

// maxLineage is the number of contexts that one can continue, one the other's messages.
const maxLineage = 1 << 17

// maxNumber is the number of no commit and no position.
const maxNumber = rowsPerParent

// ancestry is the run of that number and those it is based on, the nearest
// first (in this order also for the planner, hence CROSS): what of each the run has (own commits after from, up to upto).
// A base is older than its run; in a database that was changed, a cycle of bases ends with that.
const ancestry = `WITH RECURSIVE up (depth, num, base, own, upto) AS (
	SELECT 0, num, base, coalesce(base_seq, 0), ?2 FROM run WHERE num = ?1
	UNION ALL
	SELECT depth + 1, b.num, b.base, coalesce(b.base_seq, 0), min(up.own, up.upto) FROM up CROSS JOIN run b ON b.num = up.base AND b.num < up.num
)`

// sharedRanges lists where a run's commits up to a number lie, the oldest first.
func (l lineage) sharedRanges(num, upto int64) ([]sharedRange, error) {
	var out []sharedRange
	err := l.query(func(row scanner) error {
		var v sharedRange
		err := row.Scan(&v.num, &v.from, &v.upto)
		out = append(out, v)
		return err
	}, ancestry+" SELECT num, own, upto FROM up WHERE upto > own ORDER BY depth DESC", num, upto)
	return out, err
}

func (l lineage) query(scan func(row scanner) error, query string, args ...any) error {
	rows, err := l.q.QueryContext(l.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close() // Err says what failed
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// How a context continues the messages of another, in the column kind.
const (
	fromLane    = rowaudit.FromLane
	fromBase    = rowaudit.FromBase
	fromRun     = rowaudit.FromRun
	fromSession = rowaudit.FromSession
)

// contextRef is a row of context, or minus the num of a round whose context main has
// none, and how many of its messages belong to the context
// asked; run is the one that the row is of.
type contextRef struct {
	id, run, start, source int64
	kind                   string
	length                 int64
}

// messageContext returns the context that its own messages are rows of.
func (h contextRef) messageContext() int64 {
	if h.kind == fromSession {
		return h.source
	}
	return h.id
}

// findContext finds the context that a name means in a run, as of one of the run's
// commits: its own, or the nearest of the runs that it is based on. Its id is 0
// if there is none.
func (l lineage) findContext(num int64, name string, upto int64) (contextRef, error) {
	h := contextRef{}
	var seq int64
	err := l.q.QueryRowContext(l.ctx, ancestry+` SELECT id, run, start, source, kind, upto FROM (
			SELECT depth, c.id, c.run, c.start, coalesce(c.source, 0) AS source, coalesce(c.kind, '') AS kind, up.upto
			FROM up CROSS JOIN context c ON c.run = up.num AND c.name = ?3 WHERE up.upto > up.own
			UNION ALL SELECT depth, -r.num, r.num, r.first, s.context, 'session', up.upto
			FROM up CROSS JOIN run_row r ON r.num = up.num AND r.folded & 1 CROSS JOIN session s ON s.num = r.session
			WHERE up.upto > up.own AND ?3 = ?4
		) ORDER BY depth LIMIT 1`, num, upto, name, engine.MainContext).Scan(&h.id, &h.run, &h.start, &h.source, &h.kind, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return contextRef{}, nil
	}
	if err != nil {
		return contextRef{}, err
	}
	if h.length, err = l.endPosition(h); err != nil || seq == maxNumber {
		return h, err
	}
	h.length, err = l.lengthAt(h, seq)
	return h, err
}

// endPosition returns the position after the last message of a context.
func (l lineage) endPosition(h contextRef) (int64, error) {
	end, err := l.nextPosition(h.messageContext(), h.start)
	if err != nil || h.kind != fromSession {
		return end, err
	}
	var first sql.NullInt64
	err = l.q.QueryRowContext(l.ctx, `SELECT (SELECT n.first FROM run r JOIN run n ON n.session = r.session
		WHERE r.num = ? AND (n.first, n.num) > (r.first, r.num) ORDER BY n.first, n.num LIMIT 1)`, h.run).Scan(&first)
	if first.Valid {
		end = min(end, first.Int64)
	}
	return max(end, h.start), err
}

// nextPosition returns the position after the last row of a context, or start.
func (l lineage) nextPosition(id, start int64) (int64, error) {
	var last sql.NullInt64
	err := l.q.QueryRowContext(l.ctx, "SELECT max(id) & 0xffffffff FROM message WHERE id >= ? AND id < ?",
		id*rowsPerParent, (id+1)*rowsPerParent).Scan(&last)
	if last.Valid {
		return last.Int64 + 1, err
	}
	return start, err
}

// lengthAt returns how long a context was after a commit of the run that it is of.
// Positions are in the order of commits, so that it need not read them all.
func (l lineage) lengthAt(h contextRef, seq int64) (int64, error) {
	if h.start < 0 || h.length > rowsPerParent { // in a database that was changed; the search would not end
		return 0, fmt.Errorf("%w: context %d begins at position %d and ends at %d", store.ErrCorrupt, h.id, h.start, h.length)
	}
	lo, hi := h.start, h.length // all before lo are of commits up to seq, all from hi on are not
	for probe := hi - 1; lo < hi; probe = (lo + hi) / 2 {
		var at sql.NullInt64
		err := l.q.QueryRowContext(l.ctx, "SELECT seq FROM message WHERE id = ?", messageID(h.messageContext(), probe)).Scan(&at)
		if err != nil {
			return 0, missingError("message", messageID(h.messageContext(), probe), err)
		}
		if !at.Valid {
			return 0, fmt.Errorf("%w: message %d is of no commit", store.ErrCorrupt, messageID(h.messageContext(), probe))
		}
		if at.Int64 <= seq {
			lo = probe + 1
		} else {
			hi = probe
		}
	}
	return lo, nil
}

// stretch is a range of positions, to not included, whose messages are rows of
// one context.
type stretch struct {
	context, from, to int64
}

// stretches lists where the positions of a context from up to to lie, the last
// first. What is before a lane of the run that was asked about is left out.
func (l lineage) stretches(h contextRef, from, to int64) ([]stretch, error) {
	var out []stretch
	add := func(id, lo, hi int64) {
		lo, hi = max(lo, from), min(hi, to)
		if k := len(out) - 1; k >= 0 && out[k].context == id && out[k].from == hi && lo < hi {
			out[k].from = lo
		} else if lo < hi {
			out = append(out, stretch{id, lo, hi})
		}
	}
	add(h.messageContext(), h.start, h.length)
	upper := min(h.start, h.length)
	if h.source == 0 || h.kind == fromLane || upper <= from {
		return out, nil
	}
	depth := 0
	err := l.query(func(row scanner) error {
		var v contextRef
		var hi int64
		if err := row.Scan(&v.id, &v.start, &v.source, &v.kind, &hi); err != nil {
			return err
		}
		add(v.messageContext(), v.start, hi)
		if depth++; depth > maxLineage {
			return fmt.Errorf("context %d continues over %d others: the database was changed: %w", h.id, maxLineage, store.ErrCorrupt)
		}
		return nil
	}, `WITH RECURSIVE down (depth, id, start, source, kind, hi, inside) AS (
			SELECT 0, id, start, source, kind, ?2, ?4 FROM context WHERE id = ?1
			UNION ALL
			SELECT depth + 1, c.id, c.start, c.source, c.kind, min(down.start, down.hi), inside AND down.kind = 'base'
			FROM down CROSS JOIN context c ON c.id = down.source
			WHERE min(down.start, down.hi) > ?3 AND NOT (inside AND down.kind = 'lane') AND depth <= ?5
		)
		SELECT id, start, coalesce(source, 0), coalesce(kind, ''), hi FROM down ORDER BY depth`,
		h.source, upper, from, h.kind == fromBase, maxLineage)
	return out, err
}

// sharedBase says what a run shares with its base.
type sharedBase struct {
	run, seq, last int64
}

// findBase finds the base of a new run. The error is store.ErrNotFound if it has no such
// commit.
func (l lineage) findBase(b *store.Base) (sharedBase, error) {
	if b == nil {
		return sharedBase{}, nil
	}
	out := sharedBase{seq: b.Seq}
	err := l.q.QueryRowContext(l.ctx, "SELECT num FROM run WHERE id = ?", b.Run).Scan(&out.run)
	if err != nil || b.Seq == 0 {
		return out, wrap("base "+b.Run, err)
	}
	levels, err := l.sharedRanges(out.run, b.Seq)
	if err != nil {
		return out, err
	}
	if n := len(levels); n > 0 {
		err = l.q.QueryRowContext(l.ctx, "SELECT last FROM run_commit WHERE id = ?",
			levels[n-1].num*rowsPerParent+b.Seq).Scan(&out.last)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return out, err
		}
	}
	return out, fmt.Errorf("commit %d of base %s: %w", b.Seq, b.Run, store.ErrNotFound)
}

// roundInfo says which round of which session a run is; it is zero for other runs.
type roundInfo struct {
	session, number int64
	context         int64 // context.id of the session's history
	first           int64 // position in it that the round begins at
	folded          int64 // what it has no row of its own for
}

// What a round has no row of its own for, as bits.
const (
	foldedMain    = 1 // the context main, which continues the session's history
	foldedMessage = 2 // the message that began it
)
