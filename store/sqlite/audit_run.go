package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Audit compares the data stored outside the chain of a run with its commits: its row, its
// contexts and the positions of its messages. It checks nothing for a run that was started
// before there were chains.
func (s *Store) Audit(ctx context.Context, c store.Chain, f *store.JournalFacts) ([]store.Finding, error) {
	if c.Run == "" {
		return nil, nil
	}
	a := runAudit{lineage: lineage{ctx, s.reader}, chain: c, facts: f}
	for _, check := range []func() error{a.checkTypes, a.checkSeals, a.checkFolded, a.checkError} {
		if err := check(); err != nil {
			return nil, s.wrap("audit run "+c.Run, err)
		}
	}
	if c.Unchained > 0 {
		return a.found, nil
	}
	if err := a.checkRow(s); err != nil {
		return nil, s.wrap("audit run "+c.Run, err)
	}
	if err := a.checkSessionState(); err != nil {
		return nil, s.wrap("audit session state of run "+c.Run, err)
	}
	switch err := a.checkContexts(); {
	case errors.Is(err, store.ErrCorrupt):
		a.addFinding(store.FoundChanged, "its contexts cannot be read: %v", err)
	case err != nil:
		return nil, s.wrap("audit contexts of run "+c.Run, err)
	}
	return a.found, nil
}

// runAudit is the audit of one run.
type runAudit struct {
	lineage
	chain store.Chain
	facts *store.JournalFacts
	found []store.Finding
}

func (a *runAudit) addFinding(what, format string, args ...any) {
	a.found = append(a.found, store.Finding{Run: a.chain.Run, What: what, Message: fmt.Sprintf(format, args...)})
}

// columnDiffers reports a column that differs from the journal.
func (a *runAudit) columnDiffers(column, is, said string) {
	if is != said {
		a.addFinding(store.FoundChanged, "the run's %s is %q, and its journal says %q", column, is, said)
	}
}

// checkRow compares the row of the run with its first and last events.
func (a *runAudit) checkRow(s *Store) error {
	r, err := s.Run(a.ctx, a.chain.Run)
	if err != nil {
		if a.ctx.Err() != nil {
			return err
		}
		a.addFinding(store.FoundUnreadable, "the run's row cannot be read: %v", err)
		return nil
	}
	if a.facts.Started != nil || a.facts.Forked != nil {
		a.columnDiffers("user", r.User, a.facts.User)
	}
	switch f := a.facts; {
	case f.Forked != nil:
		a.columnDiffers("flow", r.Flow, f.Forked.Flow)
		a.columnDiffers("fingerprint", r.Fingerprint, f.Forked.Fingerprint)
		a.columnDiffers("origin", r.Origin, f.Forked.Origin)
		a.columnDiffers("session", r.Session, "")
		a.columnDiffers("parent", r.Parent, "")
		if r.Base != nil && r.Base.Seq == 0 { // the chain says the rest
			a.columnDiffers("base", r.Base.Run, f.Forked.From)
		}
		if r.Base == nil {
			a.addFinding(store.FoundChanged, "the run has no base, and its journal says that it was forked from %s", f.Forked.From)
		}
	case f.Started != nil:
		a.columnDiffers("flow", r.Flow, f.Started.Flow)
		a.columnDiffers("fingerprint", r.Fingerprint, f.Started.Fingerprint)
		a.columnDiffers("parent", r.Parent, f.Started.Parent)
		a.columnDiffers("origin", r.Origin, f.Started.Origin)
		a.columnDiffers("session", r.Session, f.Started.Session)
		a.columnDiffers("round", fmt.Sprint(r.Round), fmt.Sprint(f.Started.Round))
		if r.Base != nil {
			a.addFinding(store.FoundChanged, "the run has run %s as its base, and its journal says that it has none", r.Base.Run)
		}
	}
	if is, said := r.Head.Status, a.facts.Ended; is != said && (is.Ended() || said.Ended()) {
		what := "that it has not ended"
		if said.Ended() {
			what = said.String()
		}
		a.addFinding(store.FoundChanged, "the run's status is %s, and its journal says %s", is, what)
	}
	if is, said := errorColumn(r.Head.Error), errorColumn(a.facts.Error); is != said && a.facts.Ended.Ended() {
		a.addFinding(store.FoundChanged, "the run's error is %s, and its journal says %s", is, said)
	}
	return nil
}

// checkError checks that the run's error is written as Weir writes it.
func (a *runAudit) checkError() error {
	var text string
	err := a.q.QueryRowContext(a.ctx, "SELECT coalesce(error, '') FROM run_row WHERE num = ?", a.chain.Number).Scan(&text)
	if err != nil || text == "" {
		return err
	}
	var h store.Head
	if err := h.AddEncoded([]byte(text)); err != nil || h.Error == nil || errorColumn(h.Error) != text {
		a.addFinding(store.FoundChanged, "the run's error is not written as Weir writes it")
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
		FROM run_row WHERE num = ?1`, a.chain.Number, engine.MainContext).Scan(&folded, &session, &queued, &own, &commits, &main, &together)
	switch {
	case err != nil:
		return err
	case !together:
		a.addFinding(store.FoundChanged, "the run's row is not as Weir writes it: of its session, round and first, of its root and salt, or of its flow and program, some are there and some are not")
	case folded&^(foldedMain|foldedMessage) != 0, folded != 0 && session == 0, folded&foldedMain != 0 && main != 0,
		session != 0 && commits != 0 && (folded&foldedMessage != 0 && own || folded&foldedMessage == 0 && queued == 0): // answers have rows too
		a.addFinding(store.FoundChanged, "what the run's row says it has no other rows for is not so")
	}
	return nil
}

func errorColumn(e *engine.Error) string {
	if e == nil {
		return "none"
	}
	text, err := encodeHeadPart(&engine.RunFailed{Error: e})
	if err != nil {
		return e.Error()
	}
	return text
}

// contextAudit is a context of the run: what its row should say, and what it has.
type contextAudit struct {
	expected contextRef
	spans    [][3]int64 // position, count, commit
	next     int64
}

// checkContexts compares the rows of the run's contexts with the changes that made them.
func (a *runAudit) checkContexts() error {
	kept, err := a.storedContexts()
	if err != nil {
		return err
	}
	should, err := a.expectedContexts(kept)
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(should) {
		c := should[name]
		row, ok := kept[name]
		if !ok {
			a.addFinding(store.FoundMissing, "context %s is missing", name)
			continue
		}
		delete(kept, name)
		if row.start != c.expected.start || row.source != c.expected.source || row.kind != c.expected.kind {
			a.addFinding(store.FoundChanged, "context %s continues from another place than its journal says", name)
			continue
		}
		if err := a.checkMessages(name, row, c); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(kept) {
		a.addFinding(store.FoundAdded, "context %s is in no commit", name)
	}
	return nil
}

// expectedContexts returns the contexts that the run's changes make.
func (a *runAudit) expectedContexts(kept map[string]contextRef) (map[string]*contextAudit, error) {
	should := map[string]*contextAudit{}
	for i := range a.facts.Changes {
		ch := &a.facts.Changes[i]
		c := should[ch.ID]
		if c == nil && ch.Messages == 0 && ch.At == 0 && ch.Session == "" && (!ch.Create || a.chain.Base == 0) {
			continue
		}
		if c == nil {
			row, err := a.expectedContextRow(&ch.ContextChange, kept)
			if err != nil {
				return nil, err
			}
			c = &contextAudit{expected: row, next: row.start}
			should[ch.ID] = c
		}
		if ch.Messages > 0 {
			c.spans = append(c.spans, [3]int64{c.next, int64(ch.Messages), ch.Seq})
			c.next += int64(ch.Messages)
		}
	}
	return should, nil
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// storedContexts returns the contexts that the run has rows of, by name.
func (a *runAudit) storedContexts() (map[string]contextRef, error) {
	out := map[string]contextRef{}
	err := a.query(func(row scanner) error {
		h := contextRef{run: a.chain.Number}
		var name string
		err := row.Scan(&name, &h.id, &h.start, &h.source, &h.kind)
		out[name] = h
		return err
	}, `SELECT name, id, start, coalesce(source, 0), coalesce(kind, '') FROM context WHERE run = ?1
		UNION ALL SELECT ?2, -r.num, r.first, s.context, 'session' FROM run_row r JOIN session s ON s.num = r.session
		WHERE r.num = ?1 AND r.folded & 1`, a.chain.Number, engine.MainContext)
	return out, err
}

// expectedContextRow returns the row that a change makes of a new context, as packer.begin does.
func (a *runAudit) expectedContextRow(ch *engine.ContextChange, kept map[string]contextRef) (contextRef, error) {
	h := contextRef{start: int64(ch.At)}
	var from contextRef
	var err error
	switch {
	case ch.Session != "":
		h.kind = fromSession
		err = a.q.QueryRowContext(a.ctx, "SELECT coalesce((SELECT s.context FROM run_row r JOIN session s ON s.num = r.session WHERE r.num = ?), 0)", a.chain.Number).Scan(&h.source)
	case ch.Run != "" && ch.At > 0:
		var num int64
		err = a.q.QueryRowContext(a.ctx, "SELECT coalesce((SELECT num FROM run_row WHERE id = ?), 0)", ch.Run).Scan(&num)
		if err == nil {
			from, err = a.findContext(num, ch.Parent, maxNumber)
		}
		h.kind, h.source = fromRun, from.id
	case ch.Run == "" && ch.Parent != "" && ch.At > 0:
		h.kind = fromLane
		if own, ok := kept[ch.Parent]; ok {
			h.source = own.id
		} else if a.chain.Base != 0 {
			from, err = a.findContext(a.chain.Base, ch.Parent, a.chain.BaseSeq)
			h.source = from.id
		}
	case ch.Run == "" && !ch.Create && a.chain.Base != 0:
		if from, err = a.findContext(a.chain.Base, ch.ID, a.chain.BaseSeq); from.id != 0 {
			h.kind, h.source, h.start = fromBase, from.id, from.length
		}
	}
	if h.source == 0 {
		h.kind = ""
	}
	return h, err
}

// checkMessages checks that a context has the messages that commits appended, and no
// others, each with its commit.
func (a *runAudit) checkMessages(name string, row contextRef, c *contextAudit) error {
	end := (row.messageContext() + 1) * rowsPerParent
	if row.kind == fromSession { // the next round's are behind
		length, err := a.endPosition(contextRef{id: row.id, run: row.run, start: row.start, source: row.source, kind: row.kind})
		if err != nil {
			return err
		}
		end = messageID(row.messageContext(), length)
	}
	spans := c.spans
	return a.query(func(r scanner) error {
		var at, seq int64
		if err := r.Scan(&at, &seq); err != nil {
			return err
		}
		for len(spans) > 0 && at >= spans[0][0]+spans[0][1] {
			spans = spans[1:]
		}
		switch {
		case len(spans) == 0:
			a.addFinding(store.FoundAdded, "message %d of context %s is in no commit", at, name)
		case seq != spans[0][2]:
			a.addFinding(store.FoundChanged, "message %d of context %s is recorded under commit %d, and belongs to commit %d", at, name, seq, spans[0][2])
		}
		return nil
	}, "SELECT id & 0xffffffff, coalesce(seq, 0) FROM message WHERE id >= ? AND id < ? ORDER BY id",
		messageID(row.messageContext(), row.start), end)
}

// Fingerprints lists those of all flows that are kept.
func (s *Store) Fingerprints(ctx context.Context) ([]string, error) {
	return s.queryTexts(ctx, "list flows", "SELECT fingerprint FROM flow ORDER BY 1")
}
