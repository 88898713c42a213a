package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// rowsPerParent is the factor in row ids that combine a parent and an index: commits (run, seq)
// and messages (context, position).
const rowsPerParent = 1 << 32

// insertCommit inserts a commit only if the run still has the fence, if the run has no owner
// when it is to be acquired, and if the previous commit exists and ends where this one starts.
// The primary key prevents a second commit of the same number.
const insertCommit = `INSERT INTO run_commit (id, at, last, base, messages, events, tag)
SELECT ?1, ?2 - created, ?3, ?4, ?5, ?6, ?12 FROM run
WHERE num = ?7 AND fence = ?8 AND (?11 OR owner IS NULL)
AND (?9 OR EXISTS (SELECT 1 FROM run_commit WHERE id = ?1 - 1 AND last = ?10))
ON CONFLICT DO NOTHING`

const updateHead = `UPDATE run_row SET status = ?, waiting = ?, due = ?, usage = ?, error = ?, activity = ? WHERE num = ?`

// Append stores commits in one transaction. The result has one error for each commit: nil,
// store.ErrFenced, store.ErrSequence or store.ErrNotFound for this commit alone, or a failure
// of the database, which is the same for all and means that none is stored. A commit with the
// result nil is durable. The events must not change while Append runs.
func (s *Store) Append(ctx context.Context, appends []store.Append) []error {
	errs := make([]error, len(appends))
	if len(appends) == 0 {
		return errs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.beginTx(ctx)
	if err == nil {
		w := writeTx{s: s, ctx: context.WithoutCancel(ctx)}
		err = s.endTx(w.appendAll(appends, errs))
	}
	if err != nil {
		err = s.wrap("append", err)
		for i := range appends {
			s.runs.drop(appends[i].Commit.Run)
			errs[i] = err
		}
	}
	return errs
}

// writeTx is a transaction of appends. It assigns row ids itself, since no other process can
// insert before it ends.
type writeTx struct {
	s   *Store
	ctx context.Context //nolint:containedctx // lives as long as one call

	restoring              bool // commits of an import, which change no state of users
	idsLoaded              bool
	lastValue, lastContext int64
}

// appendAll sets errs for refused commits. It returns an error only if the database failed.
func (w *writeTx) appendAll(appends []store.Append, errs []error) error {
	for i := range appends {
		a := &appends[i]
		refused, err := w.append(a)
		if err != nil {
			return err
		}
		if refused != nil {
			c := &a.Commit
			errs[i] = fmt.Errorf("append commit %d (events from %d) of run %s under fence %d: %w",
				c.Seq, c.First, c.Run, a.Fence, refused)
			w.s.runs.drop(c.Run)
		}
	}
	return nil
}

func (w *writeTx) append(a *store.Append) (refused, failed error) {
	if a.Start != nil {
		return w.appendFirst(a)
	}
	return w.appendNext(a)
}

func (w *writeTx) appendNext(a *store.Append) (refused, failed error) {
	c := &a.Commit
	before := a.Fence // the run's, as it must be
	if a.Acquire != nil {
		before--
	}
	r, err := w.s.runs.load(w, c.Run, before)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return store.ErrNotFound, nil
	case a.Fence <= 0: // no process ever acquired it
		return store.ErrFenced, nil
	case !r.base.allows(c):
		return w.refusalReason(r.num, before, a.Acquire != nil)
	}
	again, refused, failed := w.checkSession(r, a)
	if refused != nil || failed != nil {
		return refused, failed
	}
	values, refused, failed := w.userChangesOf(r, a)
	if refused != nil || failed != nil {
		return refused, failed
	}
	p := packer{w: w, run: r, seq: c.Seq}
	if refused, failed = p.pack(c.Events); refused != nil || failed != nil {
		return refused, failed
	}
	tag, refused, failed := w.nextTag(r, c)
	if refused != nil || failed != nil {
		return refused, failed
	}
	text, base := r.deltaBases.encodeDelta(r.num*rowsPerParent+c.Seq, p.text)
	res, err := w.s.stmts.insertCommit.ExecContext(w.ctx,
		r.num*rowsPerParent+c.Seq, c.At, c.First+int64(len(c.Events))-1, nullInt(packBase(r.num, base)), p.spansColumn(), string(text),
		r.num, before, c.Seq == r.base.seq+1, c.First-1, a.Acquire == nil, int64(tag))
	if err != nil {
		return nil, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		if err != nil {
			return nil, err
		}
		return w.refusalReason(r.num, before, a.Acquire != nil)
	}
	if err := p.insert(); err != nil {
		return nil, err
	}
	if err := w.keepUserValues(values); err != nil {
		return nil, err
	}
	return nil, w.writeSideEffects(r, a, again)
}

// checkSession checks the conditions of a commit on its session and on the messages that it
// answers. again is the earlier usage of a round that takes its session back.
func (w *writeTx) checkSession(r *runState, a *store.Append) (again *engine.Usage, refused, failed error) {
	if r.round.session != 0 {
		if again, refused, failed = w.checkHoldsSession(r); refused != nil || failed != nil {
			return nil, refused, failed
		}
	}
	id, err := w.firstNotQueued(a.ConsumedMessages)
	if err == nil && id != "" {
		refused = fmt.Errorf("message %s: %w", id, store.ErrNotQueued)
	}
	return again, refused, err
}

// writeSideEffects makes the writes of a commit outside the journal.
func (w *writeTx) writeSideEffects(r *runState, a *store.Append, again *engine.Usage) error {
	if err := w.removeConsumed(a); err != nil {
		return err
	}
	if err := w.setOwner(r, a); err != nil {
		return err
	}
	if r.round.session != 0 {
		if err := w.updateSession(r, a, again); err != nil {
			return err
		}
	}
	if err := w.clearCrashes(r, a); err != nil {
		return err
	}
	return w.setHead(r, a)
}

// clearCrashes sets the run's count of crashes to zero: the run has made progress.
func (w *writeTx) clearCrashes(r *runState, a *store.Append) error {
	if r.crashes == 0 || a.AnnouncesOnly {
		return nil
	}
	_, err := w.prepared().ExecContext(w.ctx, "DELETE FROM run_crash WHERE run = ?", r.num)
	if err == nil {
		r.crashes = 0
	}
	return err
}

// packBase encodes the id of the commit that a commit of run num is a delta of: its number if
// it is of the same run, less than 0 if it is one of the first commits of an earlier run.
func packBase(num, id int64) int64 {
	run, seq := id/rowsPerParent, id%rowsPerParent
	switch {
	case run == num || id == 0:
		return seq
	case run < num && seq < 16:
		return -((num-run)*16 + seq)
	}
	return id
}

// unpackBase is the inverse of packBase.
func unpackBase(num, base int64) int64 {
	switch {
	case base < 0:
		return (num-(-base)/16)*rowsPerParent + (-base)%16
	case base < rowsPerParent:
		return num*rowsPerParent + base
	}
	return base
}

// setOwner makes a commit acquire the run, release it, or both. The cached state of the run
// stays valid, since no other process has written in between.
func (w *writeTx) setOwner(r *runState, a *store.Append) error {
	if a.Acquire == nil && !a.Release {
		return nil
	}
	var owner any
	var until int64
	fence := a.Fence
	if a.Release {
		fence++
	} else {
		owner, until = a.Acquire.Owner, w.s.clock().Add(a.Acquire.TTL).UnixMilli()
	}
	_, err := w.s.stmts.updateOwner.ExecContext(w.ctx, owner, until, fence, r.num)
	if err == nil {
		r.fence = fence
	}
	return err
}

// refusalReason returns the reason why a commit was refused.
func (w *writeTx) refusalReason(num, fence int64, take bool) (refused, failed error) {
	var now int64
	var free bool
	err := w.prepared().QueryRowContext(w.ctx, "SELECT fence, owner IS NULL FROM run WHERE num = ?", num).Scan(&now, &free)
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound, nil // deleted since it was looked up
	}
	if err != nil {
		return nil, err
	}
	if now != fence || take && !free {
		return store.ErrFenced, nil
	}
	return store.ErrSequence, nil
}

// setHead writes the head after a commit if it differs from the stored one.
func (w *writeTx) setHead(r *runState, a *store.Append) error {
	row, err := newHeadRow(&a.Head)
	if err != nil {
		return err
	}
	if err := w.notifyNear(r, &row, a); err != nil {
		return err
	}
	if r.head != nil && *r.head == row {
		return nil
	}
	if err := w.notify(r, &row, &a.Commit); err != nil {
		return err
	}
	_, err = w.s.stmts.updateHead.ExecContext(w.ctx, row.status, nullText(row.waiting), row.due,
		nullText(row.usage), nullText(row.failure), nullInt(row.activity), r.num)
	if err == nil {
		r.head = &row
	}
	return err
}

// loadLastIDs prepares nextValue and nextContext.
func (w *writeTx) loadLastIDs() error {
	if w.idsLoaded {
		return nil
	}
	w.idsLoaded = true
	return w.prepared().QueryRowContext(w.ctx,
		"SELECT coalesce((SELECT max(id) FROM value), 0), coalesce((SELECT max(id) FROM context), 0)",
	).Scan(&w.lastValue, &w.lastContext)
}

func (w *writeTx) nextValue() (int64, error) {
	err := w.loadLastIDs()
	w.lastValue++
	return w.lastValue, err
}

func (w *writeTx) nextContext() (int64, error) {
	err := w.loadLastIDs()
	w.lastContext++
	return w.lastContext, err
}

// findValue returns the id of a value by digest, 0 if it is not stored.
func (w *writeTx) findValue(root int64, d digest) (int64, error) {
	var id int64
	err := w.prepared().QueryRowContext(w.ctx, "SELECT id FROM value WHERE root = ? AND digest = ?", root, d[:]).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// headRow is a head as its columns have it.
type headRow struct {
	status                  string
	due, activity           int64
	waiting, usage, failure string
}

func newHeadRow(h *store.Head) (headRow, error) {
	row := headRow{status: statusText(h.Status), due: h.Due}
	if h.Status == engine.Running {
		row.activity = int64(h.Activity)
	}
	e := engine.NodeWaiting{Interrupts: h.Waiting}
	var err error
	if len(h.Waiting) > 0 {
		if row.waiting, err = encodeHeadPart(&e); err != nil {
			return row, err
		}
	}
	switch {
	case h.Usage == engine.Usage{}:
	case h.Usage.Estimated != 0: // which the list of the view has no place for
		if row.usage, err = encodeUsage(h.Usage); err != nil {
			return row, err
		}
	default:
		row.usage = encodeUsageColumn(h.Usage)
	}
	if h.Error != nil {
		row.failure, err = encodeHeadPart(&engine.RunFailed{Error: h.Error})
	}
	return row, err
}

// statusText returns a status in the form of the table; the view run shows its name.
func statusText(s engine.Status) string {
	if s == engine.Completed {
		return "c"
	}
	return s.String()
}

// encodeUsageColumn encodes a usage for the table: its numbers in the order of the event's
// fields, without trailing zeros. The view run shows their names.
func encodeUsageColumn(u engine.Usage) string {
	list := []int64{int64(u.Calls), int64(u.Input), int64(u.Cached), int64(u.Output), int64(u.Reasoning), u.CostMicros}
	for len(list) > 1 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	b := []byte{'['}
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}

// encodeHeadPart encodes part of a head as the event that has this part, so that its values
// keep their kinds.
func encodeHeadPart(e engine.Event) (string, error) {
	b, err := engine.EncodeEvents(nil, []engine.Event{e})
	return string(b), err
}

func nullInt(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func nullText(s string) any {
	if s == "" {
		return nil
	}
	return s
}
