package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

const selectRun = `SELECT r.id, r.flow, r.fingerprint, coalesce(r.user, ''), coalesce(r.parent, ''), coalesce(r.origin, ''),
	r.created, r.created + coalesce(c.at, 0), coalesce(c.id & 0xffffffff, r.base_seq, 0), coalesce(c.last, r.base_last, 0),
	coalesce(r.owner, ''), r.until, r.fence,
	r.status, coalesce(r.waiting, ''), r.due, coalesce(r.usage, ''), coalesce(r.error, ''),
	coalesce((SELECT id FROM run b WHERE b.num = r.base), ''), coalesce(r.base_seq, 0),
	coalesce((SELECT id FROM session s WHERE s.num = r.session), ''), coalesce(r.round, 0),
	coalesce((SELECT count FROM run_crash k WHERE k.run = r.num), 0), coalesce((SELECT activity FROM run_row a WHERE a.num = r.num), 0)
	FROM run r LEFT JOIN run_commit c ON c.id = (
		SELECT max(id) FROM run_commit WHERE id > r.num << 32 AND id < (r.num + 1) << 32)`

const selectOne = selectRun + " WHERE r.id = ?"

// Run returns a run as listings show it; store.ErrNotFound if there is none.
func (s *Store) Run(ctx context.Context, id string) (store.Run, error) {
	r, err := scanRun(s.clock(), s.reader.QueryRowContext(ctx, selectOne, id))
	return r, s.wrap("run "+id, err)
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	where, args := conditions(f)
	order := "r.num DESC"
	if f.Session != "" {
		order = "r.first DESC, r.num DESC" // that of the index, and of the rounds
	}
	if f.Before != "" {
		num, err := s.number(ctx, f.Before)
		if err != nil {
			return nil, fmt.Errorf("list runs before: %w", err)
		}
		where, args = append(where, "r.num < ?"), append(args, num)
		if f.Session != "" {
			where = append(where, "r.first <= coalesce((SELECT b.first FROM run b JOIN session s ON s.num = b.session WHERE b.num = ? AND s.id = ?), 1 << 62)")
			args = append(args, num, f.Session)
		}
	}
	out := []store.Run{}
	err := s.query(ctx, func(row scanner) error {
		r, err := scanRun(s.clock(), row)
		out = append(out, r)
		return err
	}, selectRun+" WHERE "+strings.Join(where, " AND ")+" ORDER BY "+order+" LIMIT ?", append(args, cmp.Or(f.Limit, 100))...)
	if err != nil {
		return nil, s.wrap("list runs", err)
	}
	return out, nil
}

// conditions returns those of a filter, but for where it continues.
func conditions(f store.Filter) (where []string, args []any) {
	where = []string{"TRUE"}
	for _, c := range []struct{ condition, value string }{
		{"r.flow = ?", f.Flow},
		{"r.user = ?", f.User},
		{"r.parent = ?", f.Parent},
		{"r.session = (SELECT num FROM session WHERE id = ?)", f.Session},
	} {
		if c.value != "" {
			where, args = append(where, c.condition), append(args, c.value)
		}
	}
	if f.Roots {
		where = append(where, "r.parent IS NULL")
	}
	if len(f.Status) > 0 {
		where = append(where, "r.status IN (?"+strings.Repeat(", ?", len(f.Status)-1)+")")
		for _, st := range f.Status {
			args = append(args, st.String())
		}
	}
	return where, args
}

func scanRun(now time.Time, row scanner) (store.Run, error) {
	var r store.Run
	var created, updated, until int64
	var status, waiting, usage, failure string
	var base store.Base
	err := row.Scan(&r.ID, &r.Flow, &r.Fingerprint, &r.User, &r.Parent, &r.Origin,
		&created, &updated, &r.Commits, &r.Events, &r.Owner, &until, &r.Fence,
		&status, &waiting, &r.Head.Due, &usage, &failure, &base.Run, &base.Seq, &r.Session, &r.Round, &r.Crashes, &r.Head.Activity)
	if err != nil {
		return r, err
	}
	if base.Run != "" {
		r.Base = &base
	}
	r.Created, r.Updated = time.UnixMilli(created), time.UnixMilli(updated)
	if r.Owner != "" {
		r.Until = time.UnixMilli(until)
		r.Expired = !r.Until.After(now)
	}
	if r.Head.Status, err = parseStatus(status); err != nil {
		return r, err
	}
	r.Head.Waiting = []engine.Interrupt{}
	for _, column := range []string{waiting, usage, failure} {
		if err := r.Head.AddEncoded([]byte(column)); err != nil {
			return r, fmt.Errorf("run %s: %w", r.ID, err)
		}
	}
	return r, nil
}

func parseStatus(s string) (engine.Status, error) {
	if st, ok := engine.StatusNamed(s); ok {
		return st, nil
	}
	return 0, fmt.Errorf("%w: status %q", store.ErrCorrupt, s)
}
