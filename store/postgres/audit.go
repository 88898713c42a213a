package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Audit compares the row, the contexts, the messages and the session state of a run with its journal; see
// store.AuditStore.
func (s *Store) Audit(ctx context.Context, c store.Chain, f *store.JournalFacts) ([]store.Finding, error) {
	if c.Run == "" {
		return nil, nil
	}
	a := runAudit{lineage: lineage{reader{s, ctx}}, s: s, ctx: ctx, chain: c, facts: f}
	for _, check := range []func() error{a.checkRow, a.checkEnd, a.checkSessionState, a.checkContexts} {
		if err := check(); err != nil {
			return nil, s.wrap("audit run "+c.Run, err)
		}
	}
	return a.found, nil
}

// runAudit is the audit of one run.
type runAudit struct {
	lineage
	s     *Store
	ctx   context.Context //nolint:containedctx // lives as long as one call
	chain store.Chain
	facts *store.JournalFacts
	found []store.Finding
}

func (a *runAudit) addFinding(what, format string, args ...any) {
	a.found = append(a.found, store.Finding{Run: a.chain.Run, What: what, Message: fmt.Sprintf(format, args...)})
}

// compareColumn reports a column that differs from the journal.
func (a *runAudit) compareColumn(column string, is, said any) {
	if is != said {
		a.addFinding(store.FoundChanged, "the run's %s is %q, and its journal says %q", column, fmt.Sprint(is), fmt.Sprint(said))
	}
}

// checkRow compares the run's row with its first event and its last.
func (a *runAudit) checkRow() error {
	r, err := a.s.Run(a.ctx, a.chain.Run)
	if err != nil {
		if a.ctx.Err() != nil {
			return err
		}
		a.addFinding(store.FoundUnreadable, "the run's row cannot be read: %v", err)
		return nil
	}
	if a.facts.Started != nil || a.facts.Forked != nil {
		a.compareColumn("user", r.User, a.facts.User)
	}
	switch f := a.facts; {
	case f.Forked != nil:
		a.compareForked(&r)
	case f.Started != nil:
		a.compareColumn("flow", r.Flow, f.Started.Flow)
		a.compareColumn("fingerprint", r.Fingerprint, f.Started.Fingerprint)
		a.compareColumn("parent", r.Parent, f.Started.Parent)
		a.compareColumn("origin", r.Origin, f.Started.Origin)
		a.compareColumn("session", r.Session, f.Started.Session)
		a.compareColumn("round", r.Round, f.Started.Round)
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
	if is, said := errorText(r.Head.Error), errorText(a.facts.Error); is != said && a.facts.Ended.Ended() {
		a.addFinding(store.FoundChanged, "the run's error is %s, and its journal says %s", is, said)
	}
	return nil
}

func (a *runAudit) compareForked(r *store.Run) {
	f := a.facts.Forked
	a.compareColumn("flow", r.Flow, f.Flow)
	a.compareColumn("fingerprint", r.Fingerprint, f.Fingerprint)
	a.compareColumn("origin", r.Origin, f.Origin)
	a.compareColumn("session", r.Session, "")
	a.compareColumn("parent", r.Parent, "")
	if r.Base == nil {
		a.addFinding(store.FoundChanged, "the run has no base, and its journal says that it was forked from %s", f.From)
	} else if r.Base.Seq == 0 { // the chain proves any other
		a.compareColumn("base", r.Base.Run, f.From)
	}
}

func errorText(e *engine.Error) string {
	if e == nil {
		return "none"
	}
	text, err := encodeEvent(&engine.RunFailed{Error: e})
	if err != nil {
		return e.Error()
	}
	return string(text)
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
		FROM run r LEFT JOIN LATERAL (SELECT * FROM run_commit c WHERE c.run = r.num ORDER BY seq DESC LIMIT 1) c ON TRUE WHERE r.num = $1`, a.chain.Number)
	if err != nil {
		return err
	}
	if commits != seq || events != last || tag != lastTag {
		a.addFinding(store.FoundChanged, "the run's row says that its last commit is %d with event %d and tag %d, and it is %d with event %d and tag %d",
			commits, events, uint32(tag), seq, last, uint32(lastTag))
	}
	if root != treeOf || !sameSecret {
		a.addFinding(store.FoundChanged, "the run is recorded in another tree of runs (root %d) than that of its parent or session (root %d), or with another secret", root, treeOf)
	}
	if !placed {
		a.addFinding(store.FoundChanged, "the run is no round, and its row has the number or the place of one")
	}
	return nil
}

// checkSessionState compares what the run changed of the state of its session with its journal.
func (a *runAudit) checkSessionState() error {
	rest := a.facts.Session
	if a.facts.Started == nil || a.facts.Started.Session == "" {
		rest = nil
	}
	err := a.query(func(row pgx.Row) error {
		var v storedValue
		if err := row.Scan(into(&v.key), &v.value, into(&v.reducer), &v.round, into(&v.sender), &v.at); err != nil {
			return err
		}
		if len(rest) == 0 {
			a.addFinding(store.FoundAdded, "the change of the session's state key %q is not in the journal", v.key)
			return nil
		}
		said := rest[0]
		rest = rest[1:]
		var value []byte
		if !said.Delete {
			var err error
			if value, err = encodeValue(said.Value); err != nil {
				return err
			}
		}
		if v.key != said.Key || v.reducer != said.Reducer || v.round != int64(a.facts.Started.Round) || v.sender != "" || v.at != a.facts.SessionAt ||
			(v.value == nil) != (value == nil) || string(v.value) != string(value) {
			a.addFinding(store.FoundChanged, "the change of the session's state key %q is not what the journal says", v.key)
		}
		return nil
	}, `SELECT key, value, reducer, round, sender, at FROM session_change WHERE run = $1 AND session = (SELECT session FROM run WHERE num = $1) ORDER BY num`, a.chain.Number)
	for i := range rest {
		a.addFinding(store.FoundMissing, "the change of the session's state key %q is missing", rest[i].Key)
	}
	return err
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
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		row, ok := kept[name]
		e := expected[name]
		switch {
		case !ok:
			a.addFinding(store.FoundMissing, "context %s is missing", name)
		case row.start != e.start || row.source != e.source || row.kind != e.kind:
			a.addFinding(store.FoundChanged, "context %s continues from another place than its journal says", name)
		}
		e.id = row.id
		delete(kept, name)
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		a.addFinding(store.FoundAdded, "context %s is in no commit", name)
	}
	if len(a.found) > 0 {
		return nil // messages would be reported in the wrong places
	}
	return a.checkMessages(expected)
}

// storedContexts reads the rows of the run's contexts by name.
func (a *runAudit) storedContexts() (map[string]contextRef, error) {
	out := map[string]contextRef{}
	err := a.query(func(row pgx.Row) error {
		h := contextRef{run: a.chain.Number}
		var name string
		err := row.Scan(into(&name), &h.id, &h.start, &h.source, &h.kind)
		out[name] = h
		return err
	}, "SELECT name, id, start, coalesce(source, 0), kind FROM context WHERE run = $1", a.chain.Number)
	return out, err
}

// expectedContexts returns the contexts that the run's changes make.
func (a *runAudit) expectedContexts(kept map[string]contextRef) (map[string]*expectedContext, error) {
	out := map[string]*expectedContext{}
	for i := range a.facts.Changes {
		ch := &a.facts.Changes[i]
		if out[ch.ID] != nil {
			continue
		}
		h, err := a.expectedRow(&ch.ContextChange, kept)
		if err != nil {
			return nil, err
		}
		if h.kind == fromBase && ch.Messages == 0 {
			continue // it is the base's
		}
		out[ch.ID] = &expectedContext{h, h.start}
	}
	return out, nil
}

// expectedRow is the row of a context that a change makes, as commitWriter.findSource finds it.
func (a *runAudit) expectedRow(ch *engine.ContextChange, kept map[string]contextRef) (contextRef, error) {
	h := contextRef{start: int64(ch.At)}
	var from contextRef
	var err error
	switch {
	case ch.Session != "":
		h.kind = fromSession
		err = a.queryRow([]any{&h.source}, "SELECT coalesce((SELECT s.context FROM run r JOIN session s ON s.num = r.session WHERE r.num = $1), 0)", a.chain.Number)
	case ch.Run != "" && ch.At > 0:
		var num int64
		err = a.queryRow([]any{&num}, "SELECT coalesce((SELECT num FROM run WHERE id = $1), 0)", text(ch.Run))
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
			h.kind, h.source, h.start = fromBase, from.id, from.end
		}
	}
	if h.source == 0 {
		h.kind = ""
	}
	return h, err
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
	}, "SELECT context, position, seq, start, length, id, role FROM message WHERE run = $1 ORDER BY seq, start, context, position", a.chain.Number)
	for after := int64(0); err == nil; {
		var rows []commitRow
		rows, err = a.s.commitRows(a.ctx, a.chain.Number, after, maxNumber)
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
		a.addFinding(store.FoundAdded, "message %d of context %d is in no commit", kept[0].position, kept[0].context)
	}
	return err
}

// checkMessagesOf compares the first of the rows with the messages of a commit, and returns the others. It is done
// after a difference.
func (a *runAudit) checkMessagesOf(c *commitRow, contexts map[string]*expectedContext, kept []messageRow) (rest []messageRow, done bool, err error) {
	commit, err := c.decode(a.chain.Run)
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
			a.addFinding(store.FoundMissing, "message %d of context %s, of commit %d, is missing", want.position, at.Context, c.seq)
			return nil, true, nil
		case kept[0] != want:
			a.addFinding(store.FoundChanged, "the row of message %d of context %s, of commit %d, differs from the commit", want.position, at.Context, c.seq)
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
