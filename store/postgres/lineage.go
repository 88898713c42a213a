package postgres

import (
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/rowaudit"
)

// A run with a base shares that run's first commits, and a context may begin with the
// messages of another. Nothing of either is copied. lineage finds where commits and
// messages are.
type lineage struct{ rowSource }

// maxNumber is greater than the number of every commit and position.
const maxNumber = math.MaxInt64 / 2

// sharedRange is a run whose commits after from and up to upto are commits of a run that
// shares them.
type sharedRange struct {
	num, from, upto int64
}

// ancestry selects the run $1 up to its commit $2 and the runs that it is based on, the
// nearest first. The run num has the commits after own and up to upto.
const ancestry = `WITH RECURSIVE up (depth, num, base, own, upto) AS (
	SELECT 0, num, base, base_seq, $2::bigint FROM run WHERE num = $1
	UNION ALL
	SELECT depth + 1, b.num, b.base, b.base_seq, least(up.own, up.upto) FROM up JOIN run b ON b.num = up.base AND b.num < up.num
)`

// sharedRanges lists where the commits of a run up to a number are, the oldest first.
func (l lineage) sharedRanges(num, upto int64) (out []sharedRange, err error) {
	err = l.query(func(row pgx.Row) error {
		var v sharedRange
		err := row.Scan(&v.num, &v.from, &v.upto)
		out = append(out, v)
		return err
	}, ancestry+" SELECT num, own, upto FROM up WHERE upto > own ORDER BY depth DESC", num, upto)
	return out, err
}

// The values of context.kind.
const (
	fromLane    = rowaudit.FromLane
	fromBase    = rowaudit.FromBase
	fromRun     = rowaudit.FromRun
	fromSession = rowaudit.FromSession
)

// contextRef is a row of context with the end of its messages.
type contextRef struct {
	id, run, start, source int64
	kind                   string
	end                    int64
}

// messages returns the context under which the messages of h are rows.
func (h contextRef) messages() int64 {
	if h.kind == fromSession {
		return h.source
	}
	return h.id
}

// findContext finds the context with a name in a run as of one of the run's commits: its own,
// or that of the nearest run that it is based on. The id is 0 if there is none.
func (l lineage) findContext(num int64, name string, upto int64) (h contextRef, err error) {
	var seq int64
	err = l.queryRow([]any{&h.id, &h.run, &h.start, &h.source, &h.kind, &seq}, ancestry+`
		SELECT c.id, c.run, c.start, coalesce(c.source, 0), c.kind, up.upto
		FROM up JOIN context c ON c.run = up.num AND c.name = $3 WHERE up.upto > up.own
		ORDER BY depth LIMIT 1`, num, upto, text(name))
	if errors.Is(err, pgx.ErrNoRows) {
		return contextRef{}, nil
	}
	if err != nil {
		return contextRef{}, err
	}
	if h.end, err = l.endOf(h); err != nil || seq == maxNumber {
		return h, err
	}
	h.end, err = l.endAt(h, seq)
	return h, err
}

// endOf returns the position after the last message of a context.
func (l lineage) endOf(h contextRef) (end int64, err error) {
	if end, err = l.nextPosition(h.messages(), h.start); err != nil || h.kind != fromSession {
		return end, err
	}
	var next *int64 // where the next round of the session begins
	err = l.queryRow([]any{&next}, `SELECT (SELECT n.first FROM run r JOIN run n ON n.session = r.session
		WHERE r.num = $1 AND (n.first, n.num) > (r.first, r.num) ORDER BY n.first, n.num LIMIT 1)`, h.run)
	if next != nil {
		end = min(end, *next)
	}
	return max(end, h.start), err
}

// nextPosition returns the position after the last message of a context, start if it has
// none.
func (l lineage) nextPosition(id, start int64) (end int64, err error) {
	err = l.queryRow([]any{&end}, "SELECT coalesce(max(position) + 1, $2) FROM message WHERE context = $1", id, start)
	return end, err
}

// endAt returns the end of a context after a commit of its run. Positions are in the order
// of commits.
func (l lineage) endAt(h contextRef, seq int64) (end int64, err error) {
	lo, hi := h.start, h.end // all positions before lo are of commits up to seq, none from hi on is
	for probe := hi - 1; lo < hi; probe = (lo + hi) / 2 {
		var at int64
		err := l.queryRow([]any{&at}, "SELECT seq FROM message WHERE context = $1 AND position = $2", h.messages(), probe)
		if errors.Is(err, pgx.ErrNoRows) {
			err = fmt.Errorf("%w: message %d of context %d is missing", store.ErrCorrupt, probe, h.messages())
		}
		if err != nil {
			return 0, err
		}
		if at <= seq {
			lo = probe + 1
		} else {
			hi = probe
		}
	}
	return lo, nil
}

// stretch is a range of positions, the last excluded, whose messages are rows of one
// context.
type stretch struct {
	context, from, to int64
}

// stretches lists where the positions of a context from up to to are, the last first.
// Messages before a lane of the run itself are left out.
func (l lineage) stretches(h contextRef, from, to int64) (out []stretch, err error) {
	add := func(id, lo, hi int64) {
		lo, hi = max(lo, from), min(hi, to)
		if k := len(out) - 1; k >= 0 && out[k].context == id && out[k].from == hi && lo < hi {
			out[k].from = lo
		} else if lo < hi {
			out = append(out, stretch{id, lo, hi})
		}
	}
	add(h.messages(), h.start, h.end)
	upper := min(h.start, h.end)
	if h.source == 0 || h.kind == fromLane || upper <= from {
		return out, nil
	}
	err = l.query(func(row pgx.Row) error {
		var v contextRef
		if err := row.Scan(&v.id, &v.start, &v.source, &v.kind, &v.end); err != nil {
			return err
		}
		add(v.messages(), v.start, v.end)
		return nil
	}, `WITH RECURSIVE down (depth, id, start, source, kind, hi, inside) AS (
			SELECT 0, id, start, source, kind, $2::bigint, $4::boolean FROM context WHERE id = $1
			UNION ALL
			SELECT depth + 1, c.id, c.start, c.source, c.kind, least(down.start, down.hi), inside AND down.kind = 'base'
			FROM down JOIN context c ON c.id = down.source
			WHERE least(down.start, down.hi) > $3 AND NOT (inside AND down.kind = 'lane')
		)
		SELECT id, start, coalesce(source, 0), kind, hi FROM down ORDER BY depth`,
		h.source, upper, from, h.kind == fromBase)
	return out, err
}

// sharedBase is what a run shares with the one that it is based on.
type sharedBase struct {
	run, seq, last int64
	tag            int32 // of the last shared commit
}

// findBase finds the base of a new run; store.ErrNotFound if it has no such commit.
func (l lineage) findBase(b *store.Base) (out sharedBase, err error) {
	if b == nil {
		return out, nil
	}
	out.seq = b.Seq
	err = l.queryRow([]any{&out.run}, "SELECT num FROM run WHERE id = $1", text(b.Run))
	if err != nil || b.Seq == 0 {
		return out, wrap("base "+b.Run, err)
	}
	levels, err := l.sharedRanges(out.run, b.Seq)
	if err != nil {
		return out, err
	}
	if n := len(levels); n > 0 {
		err = l.queryRow([]any{&out.last, &out.tag}, "SELECT first + count - 1, tag FROM run_commit WHERE run = $1 AND seq = $2", levels[n-1].num, b.Seq)
		if err == nil || !errors.Is(err, pgx.ErrNoRows) {
			return out, err
		}
	}
	return out, fmt.Errorf("commit %d of base %s: %w", b.Seq, b.Run, store.ErrNotFound)
}
