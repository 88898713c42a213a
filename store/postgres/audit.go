package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/rowaudit"
)

// Audit compares the row, the contexts, the messages and the session state of a run with its journal; see
// store.AuditStore.
func (s *Store) Audit(ctx context.Context, c store.Chain, f *store.JournalFacts) ([]store.Finding, error) {
	if c.Run == "" {
		return nil, nil
	}
	a := runAudit{lineage: lineage{reader{s, ctx}}, Run: rowaudit.Run{Chain: c, Facts: f}, s: s, ctx: ctx}
	for _, check := range []func() error{a.checkRow, a.checkEnd, a.checkSessionState, a.checkContexts} {
		if err := check(); err != nil {
			return nil, s.wrap("audit run "+c.Run, err)
		}
	}
	return a.Found, nil
}

// runAudit is the audit of one run.
type runAudit struct {
	lineage
	rowaudit.Run
	s   *Store
	ctx context.Context //nolint:containedctx // lives as long as one call
}

// checkRow compares the run's row with its first event and its last.
func (a *runAudit) checkRow() error {
	r, err := a.s.Run(a.ctx, a.Chain.Run)
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

// checkEnd compares what the run's row says of the end of its chain and of its tree with what is there.
func (a *runAudit) checkEnd() error {
	var commits, events, seq, last, root, treeOf int64
	var tag, lastTag int32
	var sameSecret, placed bool
	err := a.queryRow([]any{&commits, &events, &tag, &seq, &last, &lastTag, &root, &treeOf, &sameSecret, &placed}, `SELECT r.commits, r.events, r.tag,
			coalesce(c.seq, r.base_seq), coalesce(c.first + c.count - 1, r.base_last), coalesce(c.tag, r.tag), r.root,
			coalesce((SELECT p.root FROM run p WHERE p.id = r.parent AND r.parent <> ''), -r.session, r.num),
			r.secret = coalesce((SELECT o.secret FROM run o WHERE o.num = r.root), (SELECT s.secret FROM session s WHERE s.num = -r.root), r.secret),
			r.session IS NOT NULL OR r.round = 0 AND r.first = 0
		FROM run r LEFT JOIN LATERAL (SELECT * FROM run_commit c WHERE c.run = r.num ORDER BY seq DESC LIMIT 1) c ON TRUE WHERE r.num = $1`, a.Chain.Number)
	if err != nil {
		return err
	}
	if commits != seq || events != last || tag != lastTag {
		a.AddFinding(store.FoundChanged, "the run's row says that its last commit is %d with event %d and tag %d, and it is %d with event %d and tag %d",
			commits, events, uint32(tag), seq, last, uint32(lastTag))
	}
	if root != treeOf || !sameSecret {
		a.AddFinding(store.FoundChanged, "the run is recorded in another tree of runs (root %d) than that of its parent or session (root %d), or with another secret", root, treeOf)
	}
	if !placed {
		a.AddFinding(store.FoundChanged, "the run is no round, and its row has the number or the place of one")
	}
	return nil
}

// checkSessionState compares what the run changed of the state of its session with its journal.
func (a *runAudit) checkSessionState() error {
	var rows []rowaudit.StateChange
	err := a.query(func(row pgx.Row) error {
		var c rowaudit.StateChange
		err := row.Scan(into(&c.Key), &c.Value, into(&c.Reducer), &c.Round, into(&c.Sender), &c.At)
		rows = append(rows, c)
		return err
	}, `SELECT key, value, reducer, round, sender, at FROM session_change WHERE run = $1 AND session = (SELECT session FROM run WHERE num = $1) ORDER BY num`, a.Chain.Number)
	if err != nil {
		return err
	}
	return a.CompareStateChanges(rows)
}

// expectedContext is a context that the run's commits make.
type expectedContext struct {
	contextRef
	next int64 // position of the next message
}

// checkContexts compares the rows of the run's contexts and messages with the commits that made them.
func (a *runAudit) checkContexts() error {
	kept, err := a.storedContexts()
	if err != nil {
		return err
	}
	expected, err := a.expectedContexts(kept)
	if err != nil {
		return err
	}
	contexts := make(map[string]*expectedContext, len(expected))
	for _, name := range a.CompareContexts(kept, expected) {
		row := kept[name]
		contexts[name] = &expectedContext{contextRef{id: row.ID, start: row.Start, source: row.Source, kind: row.Kind}, row.Start}
	}
	if len(a.Found) > 0 {
		return nil // messages would be reported in the wrong places
	}
	return a.checkMessages(contexts)
}

// storedContexts reads the rows of the run's contexts by name.
func (a *runAudit) storedContexts() (map[string]rowaudit.Context, error) {
	out := map[string]rowaudit.Context{}
	err := a.query(func(row pgx.Row) error {
		var c rowaudit.Context
		var name string
		err := row.Scan(into(&name), &c.ID, &c.Start, &c.Source, &c.Kind)
		out[name] = c
		return err
	}, "SELECT name, id, start, coalesce(source, 0), kind FROM context WHERE run = $1", a.Chain.Number)
	return out, err
}

// expectedContexts returns the contexts that the run's changes make.
func (a *runAudit) expectedContexts(kept map[string]rowaudit.Context) (map[string]rowaudit.Context, error) {
	out := map[string]rowaudit.Context{}
	for i := range a.Facts.Changes {
		ch := &a.Facts.Changes[i]
		if _, known := out[ch.ID]; known {
			continue
		}
		c, err := a.ExpectedContext(&ch.ContextChange, kept, a)
		if err != nil {
			return nil, err
		}
		if c.Kind == fromBase && ch.Messages == 0 {
			continue // it is the base's
		}
		out[ch.ID] = c
	}
	return out, nil
}

// SessionHistory implements rowaudit.Lookup.
func (a *runAudit) SessionHistory() (id int64, err error) {
	err = a.queryRow([]any{&id}, "SELECT coalesce((SELECT s.context FROM run r JOIN session s ON s.num = r.session WHERE r.num = $1), 0)", a.Chain.Number)
	return id, err
}

// ContextOfRun implements rowaudit.Lookup.
func (a *runAudit) ContextOfRun(run, name string) (int64, error) {
	var num int64
	if err := a.queryRow([]any{&num}, "SELECT coalesce((SELECT num FROM run WHERE id = $1), 0)", text(run)); err != nil {
		return 0, err
	}
	h, err := a.findContext(num, name, maxNumber)
	return h.id, err
}

// ContextOfBase implements rowaudit.Lookup.
func (a *runAudit) ContextOfBase(name string) (id, end int64, err error) {
	h, err := a.findContext(a.Chain.Base, name, a.Chain.BaseSeq)
	return h.id, h.end, err
}

// messageRow is a row of message.
type messageRow struct {
	context, position, seq int64
	start, length          int
	id, role               string
}

// checkMessages compares the rows of the run's messages with those that its commits append, in their order.
func (a *runAudit) checkMessages(contexts map[string]*expectedContext) error {
	var kept []messageRow
	err := a.query(func(row pgx.Row) error {
		var m messageRow
		err := row.Scan(&m.context, &m.position, &m.seq, &m.start, &m.length, into(&m.id), into(&m.role))
		kept = append(kept, m)
		return err
	}, "SELECT context, position, seq, start, length, id, role FROM message WHERE run = $1 ORDER BY seq, start, context, position", a.Chain.Number)
	for after := int64(0); err == nil; {
		var rows []commitRow
		rows, err = a.s.commitRows(a.ctx, a.Chain.Number, after, maxNumber)
		for i := 0; i < len(rows) && err == nil; i++ {
			after = rows[i].seq
			var done bool
			if kept, done, err = a.checkMessagesOf(&rows[i], contexts, kept); done {
				return err
			}
		}
		if len(rows) < batchCommits {
			break
		}
	}
	if err == nil && len(kept) > 0 {
		a.AddFinding(store.FoundAdded, "message %d of context %d is in no commit", kept[0].position, kept[0].context)
	}
	return err
}

// checkMessagesOf compares the first of the rows with the messages of a commit, and returns the others. It is done
// after a difference.
func (a *runAudit) checkMessagesOf(c *commitRow, contexts map[string]*expectedContext, kept []messageRow) (rest []messageRow, done bool, err error) {
	commit, err := c.decode(a.Chain.Run)
	if err != nil {
		return nil, true, nil //nolint:nilerr // the chain reports it
	}
	_, located, err := store.LocatePayload(commit.Events)
	if err != nil {
		return nil, true, err
	}
	for _, at := range located {
		if at.End > len(c.payload) {
			return nil, true, nil // the chain reports it
		}
		m, err := store.DecodePayloadMessage(c.payload[at.Start:at.End])
		x := contexts[at.Context]
		if err != nil || x == nil {
			return nil, true, err
		}
		want := messageRow{x.messages(), x.next, c.seq, at.Start, at.End - at.Start, m.ID, string(m.Role)}
		x.next++
		switch {
		case len(kept) == 0 || kept[0].seq > c.seq:
			a.AddFinding(store.FoundMissing, "message %d of context %s, of commit %d, is missing", want.position, at.Context, c.seq)
			return nil, true, nil
		case kept[0] != want:
			a.AddFinding(store.FoundChanged, "the row of message %d of context %s, of commit %d, differs from the commit", want.position, at.Context, c.seq)
			return nil, true, nil
		}
		kept = kept[1:]
	}
	return kept, false, nil
}

// Fingerprints lists the digests of all documents of Flows.
func (s *Store) Fingerprints(ctx context.Context) ([]string, error) {
	return s.queryTexts(ctx, "list flows", "SELECT fingerprint FROM flow ORDER BY fingerprint")
}

// RowHash identifies what the rows of a run and its session say beside the journal; see store.RowStore.
func (s *Store) RowHash(ctx context.Context, c store.Chain) (store.Hash, error) {
	if c.Run == "" {
		return store.Hash{}, nil
	}
	var secret []byte
	var facts *string
	err := s.queryRow(ctx, []any{&secret, &facts}, `SELECT r.secret, jsonb_build_array(r.id, r.created, r.user_id, r.flow, r.fingerprint, r.parent, r.origin,
			coalesce(r.session, 0), r.round, r.first, coalesce(r.base, 0), r.base_seq, r.base_last,
			s.id, s.user_id, s.flow, s.thread, coalesce(s.parent, 0), s.parent_round, s.created, s.context, s.start, x.source, x.kind)::text
		FROM run r LEFT JOIN session s ON s.num = r.session LEFT JOIN context x ON x.id = s.context WHERE r.num = $1`, c.Number)
	if errors.Is(err, pgx.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Hash{}, s.wrap("row of run "+c.Run, err)
	}
	return store.RowHash(secret, c.Run, []any{*facts})
}
