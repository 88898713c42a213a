package sqlite

import (
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func (w *writeTx) lineage() lineage { return lineage{w.ctx, w.prepared()} }

// context returns the context that a change is of, made with the commit where it is
// not there.
func (p *packer) context(ch *engine.ContextChange) (*contextState, error) {
	c, err := p.run.context(p.w, ch.ID)
	if err != nil {
		p.failed = err
		return nil, err
	}
	if c != nil {
		return c, nil
	}
	row, refused, err := p.newContextRow(ch)
	if err == nil && refused == nil {
		err = p.assignRow(&row)
	}
	if err != nil || refused != nil {
		p.failed = err
		return nil, firstError(err, refused)
	}
	c = &contextState{id: row.id, next: row.start, row: row.id}
	if row.kind == fromSession {
		c.id = row.source
	}
	p.run.contexts[ch.ID] = c
	return c, nil
}

// assignRow assigns a row to a new context. The main context of a round needs none, since the
// row of the run describes it.
func (p *packer) assignRow(row *contextRow) (err error) {
	r := p.run.round
	if row.kind == fromSession && row.name == engine.MainContext && row.start == r.first && row.source == r.context {
		row.id, p.mainFolded = -p.run.num, true
		return nil
	}
	if row.source == -p.run.num {
		p.mainFolded = false
	}
	if row.source, err = p.w.contextRowID(row.source); err != nil {
		return err
	}
	row.id, err = p.w.nextContext()
	p.contexts = append(p.contexts, *row)
	return err
}

// contextRowID returns the row of a context that others refer to. A round's main context that
// has none gets one.
func (w *writeTx) contextRowID(id int64) (int64, error) {
	if id >= 0 {
		return id, nil
	}
	var row int64
	err := w.prepared().QueryRowContext(w.ctx, "SELECT coalesce((SELECT id FROM context WHERE run = ? AND name = ?), 0)", -id, engine.MainContext).Scan(&row)
	if err != nil || row != 0 {
		return row, err
	}
	if row, err = w.nextContext(); err != nil {
		return 0, err
	}
	_, err = w.prepared().ExecContext(w.ctx, `INSERT INTO context (id, run, name, start, source, kind)
		SELECT ?, r.num, ?, r.first, s.context, 'session' FROM run_row r JOIN session s ON s.num = r.session WHERE r.num = ?`,
		row, engine.MainContext, -id)
	if err == nil {
		_, err = w.prepared().ExecContext(w.ctx, "UPDATE run_row SET folded = nullif(folded & ?, 0) WHERE num = ?", ^foldedMain, -id)
	}
	return row, err
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// newContextRow returns the row of a new context: what it continues.
func (p *packer) newContextRow(ch *engine.ContextChange) (row contextRow, refused, failed error) {
	row = contextRow{name: ch.ID, start: int64(ch.At)}
	switch {
	case ch.Session != "":
		row.kind, row.source = fromSession, p.run.round.context
		refused, failed = p.checkSessionContext(ch)
	case ch.Run != "":
		row.kind = fromRun
		row.source, refused, failed = p.sourceInRun(ch)
	case ch.Parent != "" && ch.At > 0:
		row.kind = fromLane
		row.source, failed = p.sourceInThisRun(ch.Parent)
	case !ch.Create && p.run.base.run != 0:
		var h contextRef
		h, failed = p.w.lineage().findContext(p.run.base.run, ch.ID, p.run.base.seq)
		if h.id != 0 {
			row.kind, row.source, row.start = fromBase, h.id, h.length
		}
	}
	if row.source == 0 {
		row.kind = ""
	}
	return row, refused, failed
}

// checkSessionContext checks that a context continues the session of which the run is a round
// of, and where that session is.
func (p *packer) checkSessionContext(ch *engine.ContextChange) (refused, failed error) {
	var id string
	var start int64
	err := p.w.prepared().QueryRowContext(p.w.ctx, "SELECT coalesce((SELECT id FROM session WHERE num = ?1), ''), coalesce((SELECT start FROM context WHERE id = ?2), 0)",
		p.run.round.session, p.run.round.context).Scan(&id, &start)
	if err != nil {
		return nil, err
	}
	if id != ch.Session || id == "" {
		return fmt.Errorf("context %s: the run is no round of session %s", ch.ID, ch.Session), nil
	}
	next, err := p.w.lineage().nextPosition(p.run.round.context, start)
	if err == nil && next != int64(ch.At) {
		return fmt.Errorf("context %s: session %s has %d messages, not %d: %w", ch.ID, id, next, ch.At, store.ErrSequence), nil
	}
	return nil, err
}

// sourceInRun returns the row of a context of another run, which has at least so many
// messages.
func (p *packer) sourceInRun(ch *engine.ContextChange) (id int64, refused, failed error) {
	if ch.At == 0 {
		return 0, nil, nil
	}
	num, err := p.w.number(ch.Run)
	if err != nil {
		return 0, nil, err
	}
	h, err := p.w.lineage().findContext(num, ch.Parent, maxNumber)
	if err != nil {
		return 0, nil, err
	}
	if num == 0 || h.id == 0 || h.length < int64(ch.At) {
		return 0, fmt.Errorf("context %s: %d messages of context %s in run %s: %w",
			ch.ID, ch.At, ch.Parent, ch.Run, store.ErrNotFound), nil
	}
	return h.id, nil, nil
}

// sourceInThisRun returns the row of a context of this run, 0 for none.
func (p *packer) sourceInThisRun(name string) (int64, error) {
	c, err := p.run.context(p.w, name)
	if err != nil || c != nil {
		if c != nil {
			return c.row, nil
		}
		return 0, err
	}
	if p.run.base.run == 0 {
		return 0, nil
	}
	h, err := p.w.lineage().findContext(p.run.base.run, name, p.run.base.seq)
	return h.id, err
}

// number returns a run's number, 0 if there is no such run.
func (w *writeTx) number(id string) (num int64, err error) {
	err = w.prepared().QueryRowContext(w.ctx, "SELECT coalesce((SELECT num FROM run WHERE id = ?), 0)", id).Scan(&num)
	return num, err
}

// allows reports whether a commit is one that the run itself can have.
func (b sharedBase) allows(c *engine.Commit) bool {
	return c.Seq > b.seq && c.Seq < rowsPerParent && (c.Seq > b.seq+1 || c.First == b.last+1)
}
