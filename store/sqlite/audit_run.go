package sqlite

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/rowaudit"
)

// Audit compares the data stored outside the chain of a run with its commits: its row, its
// contexts and the positions of its messages. It checks nothing for a run that was started
// before there were chains.
func (s *Store) Audit(ctx context.Context, c store.Chain, f *store.JournalFacts) ([]store.Finding, error) {
	if c.Run == "" {
		return nil, nil
	}
	a := runAudit{lineage{ctx, s.reader}, rowaudit.Run{Chain: c, Facts: f}}
	for _, check := range []func() error{a.checkTypes, a.checkSeals, a.checkFolded, a.checkError} {
		if err := check(); err != nil {
			return nil, s.wrap("audit run "+c.Run, err)
		}
	}
	if c.Unchained > 0 {
		return a.Found, nil
	}
	if err := a.checkRow(s); err != nil {
		return nil, s.wrap("audit run "+c.Run, err)
	}
	if err := a.checkSessionState(); err != nil {
		return nil, s.wrap("audit session state of run "+c.Run, err)
	}
	switch err := a.checkContexts(); {
	case errors.Is(err, store.ErrCorrupt):
		a.AddFinding(store.FoundChanged, "its contexts cannot be read: %v", err)
	case err != nil:
		return nil, s.wrap("audit contexts of run "+c.Run, err)
	}
	return a.Found, nil
}

// runAudit is the audit of one run.
type runAudit struct {
	lineage
	rowaudit.Run
}

// checkRow compares the row of the run with its first and last events.
func (a *runAudit) checkRow(s *Store) error {
	r, err := s.Run(a.ctx, a.Chain.Run)
	if err != nil {
		if a.ctx.Err() != nil {
			return err
		}
		a.AddFinding(store.FoundUnreadable, "the run's row cannot be read: %v", err)
		return nil
	}
	a.CompareRow(&r)
	return nil
}

// checkError checks that the run's error is written as Weir writes it.
func (a *runAudit) checkError() error {
	var text string
	err := a.q.QueryRowContext(a.ctx, "SELECT coalesce(error, '') FROM run_row WHERE num = ?", a.Chain.Number).Scan(&text)
	if err != nil || text == "" {
		return err
	}
	var h store.Head
	if err := h.AddEncoded([]byte(text)); err != nil || h.Error == nil || rowaudit.ErrorText(h.Error) != text {
		a.AddFinding(store.FoundChanged, "the run's error is not written as Weir writes it")
	}
	return nil
}

// checkFolded checks the flags in the run's row that replace separate rows, and the combination
// of its columns.
func (a *runAudit) checkFolded() error {
	var folded, session, queued, commits, main int64
	var own, together bool // own: the message that began the round has a row
	err := a.q.QueryRowContext(a.ctx, `SELECT coalesce(folded, 0), coalesce(session, 0), EXISTS (SELECT 1 FROM queue WHERE run = ?1),
		EXISTS (SELECT 1 FROM queue q WHERE q.run = run_row.num AND q.id = run_row.id),
		EXISTS (SELECT 1 FROM run_commit WHERE id > ?1 << 32 AND id < (?1 + 1) << 32), EXISTS (SELECT 1 FROM context WHERE run = ?1 AND name = ?2),
		(session IS NULL) = (first IS NULL) AND (session IS NULL) = (round IS NULL)
		AND (salt IS NULL) = (num <> root) AND (program IS NULL OR flow = '' AND fingerprint = '') AND (session IS NOT NULL OR coalesce(user, 'x') <> '')
		FROM run_row WHERE num = ?1`, a.Chain.Number, engine.MainContext).Scan(&folded, &session, &queued, &own, &commits, &main, &together)
	switch {
	case err != nil:
		return err
	case !together:
		a.AddFinding(store.FoundChanged, "the run's row is not as Weir writes it: of its session, round and first, of its root and salt, or of its flow and program, some are there and some are not")
	case folded&^(foldedMain|foldedMessage) != 0, folded != 0 && session == 0, folded&foldedMain != 0 && main != 0,
		session != 0 && commits != 0 && (folded&foldedMessage != 0 && own || folded&foldedMessage == 0 && queued == 0): // answers have rows too
		a.AddFinding(store.FoundChanged, "what the run's row says it has no other rows for is not so")
	}
	return nil
}

// checkContexts compares the rows of the run's contexts with the changes that made them.
func (a *runAudit) checkContexts() error {
	kept, err := a.storedContexts()
	if err != nil {
		return err
	}
	expected, err := a.expectedContexts(kept)
	if err != nil {
		return err
	}
	spans := a.expectedSpans(expected)
	for _, name := range a.CompareContexts(kept, expected) {
		if err := a.checkMessages(name, kept[name], spans[name]); err != nil {
			return err
		}
	}
	return nil
}

// expectedContexts returns the contexts that the run's changes make.
func (a *runAudit) expectedContexts(kept map[string]rowaudit.Context) (map[string]rowaudit.Context, error) {
	out := map[string]rowaudit.Context{}
	for i := range a.Facts.Changes {
		ch := &a.Facts.Changes[i]
		if _, known := out[ch.ID]; known || ch.Messages == 0 && ch.At == 0 && ch.Session == "" && (!ch.Create || a.Chain.Base == 0) {
			continue
		}
		c, err := a.ExpectedContext(&ch.ContextChange, kept, a)
		if err != nil {
			return nil, err
		}
		out[ch.ID] = c
	}
	return out, nil
}

// messageSpan is what a commit appends to a context.
type messageSpan struct{ position, count, commit int64 }

// expectedSpans returns the messages that the run's changes append to its contexts.
func (a *runAudit) expectedSpans(contexts map[string]rowaudit.Context) map[string][]messageSpan {
	spans := map[string][]messageSpan{}
	next := map[string]int64{}
	for i := range a.Facts.Changes {
		ch := &a.Facts.Changes[i]
		if ch.Messages == 0 {
			continue
		}
		if _, known := next[ch.ID]; !known {
			next[ch.ID] = contexts[ch.ID].Start
		}
		spans[ch.ID] = append(spans[ch.ID], messageSpan{next[ch.ID], int64(ch.Messages), ch.Seq})
		next[ch.ID] += int64(ch.Messages)
	}
	return spans
}

// storedContexts returns the contexts that the run has rows of, by name.
func (a *runAudit) storedContexts() (map[string]rowaudit.Context, error) {
	out := map[string]rowaudit.Context{}
	err := a.query(func(row scanner) error {
		var c rowaudit.Context
		var name string
		err := row.Scan(&name, &c.ID, &c.Start, &c.Source, &c.Kind)
		out[name] = c
		return err
	}, `SELECT name, id, start, coalesce(source, 0), coalesce(kind, '') FROM context WHERE run = ?1
		UNION ALL SELECT ?2, -r.num, r.first, s.context, 'session' FROM run_row r JOIN session s ON s.num = r.session
		WHERE r.num = ?1 AND r.folded & 1`, a.Chain.Number, engine.MainContext)
	return out, err
}

// SessionHistory implements rowaudit.Lookup.
func (a *runAudit) SessionHistory() (id int64, err error) {
	err = a.q.QueryRowContext(a.ctx, "SELECT coalesce((SELECT s.context FROM run_row r JOIN session s ON s.num = r.session WHERE r.num = ?), 0)", a.Chain.Number).Scan(&id)
	return id, err
}

// ContextOfRun implements rowaudit.Lookup.
func (a *runAudit) ContextOfRun(run, name string) (int64, error) {
	var num int64
	if err := a.q.QueryRowContext(a.ctx, "SELECT coalesce((SELECT num FROM run_row WHERE id = ?), 0)", run).Scan(&num); err != nil {
		return 0, err
	}
	h, err := a.findContext(num, name, maxNumber)
	return h.id, err
}

// ContextOfBase implements rowaudit.Lookup.
func (a *runAudit) ContextOfBase(name string) (id, end int64, err error) {
	h, err := a.findContext(a.Chain.Base, name, a.Chain.BaseSeq)
	return h.id, h.length, err
}

// checkMessages checks that a context has the messages that commits appended, and no
// others, each with its commit.
func (a *runAudit) checkMessages(name string, c rowaudit.Context, spans []messageSpan) error {
	row := contextRef{id: c.ID, run: a.Chain.Number, start: c.Start, source: c.Source, kind: c.Kind}
	end := (row.messageContext() + 1) * rowsPerParent
	if row.kind == fromSession { // the next round's are behind
		length, err := a.endPosition(row)
		if err != nil {
			return err
		}
		end = messageID(row.messageContext(), length)
	}
	return a.query(func(r scanner) error {
		var at, seq int64
		if err := r.Scan(&at, &seq); err != nil {
			return err
		}
		for len(spans) > 0 && at >= spans[0].position+spans[0].count {
			spans = spans[1:]
		}
		switch {
		case len(spans) == 0:
			a.AddFinding(store.FoundAdded, "message %d of context %s is in no commit", at, name)
		case seq != spans[0].commit:
			a.AddFinding(store.FoundChanged, "message %d of context %s is recorded under commit %d, and belongs to commit %d", at, name, seq, spans[0].commit)
		}
		return nil
	}, "SELECT id & 0xffffffff, coalesce(seq, 0) FROM message WHERE id >= ? AND id < ? ORDER BY id",
		messageID(row.messageContext(), row.start), end)
}

// Fingerprints lists those of all flows that are kept.
func (s *Store) Fingerprints(ctx context.Context) ([]string, error) {
	return s.queryTexts(ctx, "list flows", "SELECT fingerprint FROM flow ORDER BY 1")
}
