package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

const selectRun = `SELECT r.id, r.flow, r.fingerprint, r.user_id, r.parent, r.origin, r.created, r.updated, r.commits, r.events,
	r.owner, r.until, r.until <= coalesce($1::bigint, weir_now()), r.fence, r.status, r.activity, r.waiting, r.due, r.usage, r.failure,
	coalesce((SELECT id FROM run b WHERE b.num = r.base), ''), r.base_seq,
	coalesce((SELECT id FROM session s WHERE s.num = r.session), ''), r.round, r.crashes FROM run r`

// Run returns the row of a run; see store.Journal.
func (s *Store) Run(ctx context.Context, id string) (out store.Run, err error) {
	err = s.query(ctx, func(row pgx.Row) error {
		out, err = scanRun(row)
		return err
	}, selectRun+" WHERE r.id = $2", s.nowArg(), text(id))
	if err == nil && out.ID == "" && id != "" {
		err = store.ErrNotFound
	}
	return out, s.wrap("run "+id, err)
}

func scanRun(row pgx.Row) (store.Run, error) {
	var r store.Run
	var created, updated, until int64
	var status string
	var waiting, usage, failure []byte
	var base store.Base
	var activity int16
	err := row.Scan(into(&r.ID), into(&r.Flow), into(&r.Fingerprint), into(&r.User), into(&r.Parent), into(&r.Origin), &created, &updated,
		&r.Commits, &r.Events, into(&r.Owner), &until, &r.Expired, &r.Fence, &status, &activity, &waiting, &r.Head.Due, &usage, &failure,
		into(&base.Run), &base.Seq, into(&r.Session), &r.Round, &r.Crashes)
	if err != nil {
		return r, err
	}
	if base.Run != "" {
		r.Base = &base
	}
	r.Created, r.Updated = time.UnixMilli(created), time.UnixMilli(updated)
	if r.Owner != "" {
		r.Until = time.UnixMilli(until)
	}
	r.Expired = r.Expired && r.Owner != ""
	r.Head.Activity = engine.Activity(activity)
	if r.Head.Status, err = parseStatus(status); err != nil {
		return r, err
	}
	r.Head.Waiting = []engine.Interrupt{}
	for _, column := range [][]byte{waiting, usage, failure} {
		if err := r.Head.AddEncoded(column); err != nil {
			return r, fmt.Errorf("run %s: %w", r.ID, err)
		}
	}
	return r, nil
}

// condition is a part of a WHERE clause with its arguments. In the text, ? stands for each.
type conditions struct {
	where []string
	args  []any
}

func (c *conditions) add(condition string, args ...any) {
	for _, a := range args {
		c.args = append(c.args, a)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(c.args)), 1)
	}
	c.where = append(c.where, condition)
}

// Runs lists runs, newest first. A page ends where Limit says, and the next one continues
// with the runs of lower numbers.
func (s *Store) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	c := conditions{args: []any{s.nowArg()}}
	c.add("TRUE")
	for _, x := range []struct{ condition, value string }{
		{"r.flow = ?", f.Flow},
		{"r.user_id = ?", f.User},
		{"r.parent = ?", f.Parent},
		{"r.session = (SELECT num FROM session WHERE id = ?)", f.Session},
	} {
		if x.value != "" {
			c.add(x.condition, text(x.value))
		}
	}
	if f.Roots {
		c.add("r.parent = ''")
	}
	if len(f.Status) > 0 {
		var names []string
		for _, st := range f.Status {
			names = append(names, st.String())
		}
		c.add("r.status = ANY(?)", names)
	}
	order := "r.num DESC"
	if f.Session != "" {
		order = "r.first DESC, r.num DESC"
	}
	if f.Before != "" {
		if err := s.addBefore(ctx, &c, &f); err != nil {
			return nil, fmt.Errorf("list runs before: %w", err)
		}
	}
	c.add("TRUE ORDER BY "+order+" LIMIT ?", cmp.Or(f.Limit, 100))
	out := []store.Run{}
	err := s.query(ctx, func(row pgx.Row) error {
		r, err := scanRun(row)
		out = append(out, r)
		return err
	}, selectRun+" WHERE "+strings.Join(c.where, " AND "), c.args...)
	if err != nil {
		return nil, s.wrap("list runs", err)
	}
	return out, nil
}

func (s *Store) addBefore(ctx context.Context, c *conditions, f *store.Filter) error {
	num, err := s.number(ctx, f.Before)
	if err != nil {
		return err
	}
	c.add("r.num < ?", num)
	if f.Session != "" {
		c.add("r.first <= coalesce((SELECT b.first FROM run b JOIN session s ON s.num = b.session WHERE b.num = ? AND s.id = ?), 1::bigint << 62)", num, text(f.Session))
	}
	return nil
}

// FindRunIDs returns at most 100 ids that begin with prefix, sorted.
func (s *Store) FindRunIDs(ctx context.Context, prefix string) ([]string, error) {
	return s.queryTexts(ctx, "find runs", "SELECT id FROM run WHERE id LIKE $1 ORDER BY id LIMIT 100", likePrefix(prefix))
}
