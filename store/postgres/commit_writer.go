package postgres

import (
	"bytes"
	"maps"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// commitWriter writes one commit of a group. It checks everything before it queues the
// first statement, so that a refused commit leaves nothing.
type commitWriter struct {
	t       *tx
	g       *group
	states  map[string]*runState
	a       *store.Append
	encoded *encodedCommit

	r        *runState
	session  *sessionRow // of a round
	again    *engine.Usage
	contexts []newContext
	rows     messageRows
	next     map[string]contextState // contexts that the commit changes
	values   []userValue             // of the user, after the commit
	key      *codec.DataKey          // of the run's user
	userKey  *codec.DataKey          // of the user of values
}

// write returns why the commit is refused, or what failed in the database.
func (w *commitWriter) write() (refused, failed error) {
	if w.encoded.err != nil {
		return w.encoded.err, nil
	}
	if w.a.Start != nil {
		return w.writeFirst()
	}
	if w.r = w.states[w.a.Commit.Run]; w.r == nil {
		return store.ErrNotFound, nil
	}
	return w.writeNext()
}

// writeFirst makes the run with its first commit. If that is refused, there is no run.
func (w *commitWriter) writeFirst() (refused, failed error) {
	w.t.queue("SAVEPOINT first")
	r, err := w.startRun()
	if isRefusal(err) {
		refused = err
	} else if failed = err; err == nil {
		w.r = r
		refused, failed = w.writeNext()
	}
	switch {
	case failed != nil:
		return nil, failed
	case refused != nil:
		w.t.queue("ROLLBACK TO first")
	default:
		w.states[w.r.id] = w.r
	}
	w.t.queue("RELEASE first")
	return refused, nil
}

func (w *commitWriter) writeNext() (refused, failed error) {
	if err := w.r.refusal(w.a); err != nil {
		return err, nil
	}
	if refused, failed = w.checkSession(); refused != nil || failed != nil {
		return refused, failed
	}
	head, err := newHeadRow(&w.a.Head)
	if err != nil {
		return err, nil
	}
	if refused, failed = w.placeMessages(); refused != nil || failed != nil {
		return refused, failed
	}
	if write := w.g.userStateWrite(w.a); write != nil {
		if w.values, refused, failed = w.t.combineUserState(write); refused != nil || failed != nil {
			return refused, failed
		}
	}
	if failed = w.findKeys(); failed != nil {
		return nil, failed
	}
	if err := w.queueCommit(&head); err != nil {
		return nil, err
	}
	return nil, w.writeSideEffects()
}

// findKeys finds the data keys of the contents that the commit writes.
func (w *commitWriter) findKeys() (err error) {
	if w.key, err = w.t.dataKey(w.r.user); err == nil && len(w.values) > 0 {
		w.userKey, err = w.t.dataKey(w.g.userStateWrite(w.a).User)
	}
	return err
}

// encode returns contents of the run as they are stored.
func (w *commitWriter) encode(plain []byte) []byte { return w.t.s.encode(w.key, plain) }

const insertCommit = `INSERT INTO run_commit (run, seq, first, count, at, tag, payload) VALUES ($1, $2, $3, $4, $5, $6, $7)`

const updateRun = `UPDATE run SET commits = $2, events = $3, tag = $4, updated = $5, owner = $6, until = CASE $7::bigint WHEN -1 THEN until ELSE $7 END,
	fence = $8, crashes = $9 WHERE num = $1`

const updateRunAndHead = `UPDATE run SET commits = $2, events = $3, tag = $4, updated = $5, owner = $6, until = CASE $7::bigint WHEN -1 THEN until ELSE $7 END,
	fence = $8, crashes = $9, status = $10, activity = $11, due = $12, waiting = $13, usage = $14, failure = $15 WHERE num = $1`

// queueCommit queues the statements that store the commit, and changes the state of the run
// as they do.
func (w *commitWriter) queueCommit(head *headRow) error {
	r, c := w.r, &w.a.Commit
	tag := r.chainTag(w.a, w.encoded.payload)
	w.t.queue(insertCommit, r.num, c.Seq, c.First, len(c.Events), c.At, int32(tag), w.encode(w.encoded.payload))
	for _, x := range w.contexts {
		w.t.queue(insertContext, x.id, r.num, text(x.name), x.start, nullInt(x.source), x.kind)
	}
	if len(w.rows.position) > 0 {
		w.rows.queue(w.t, r.num, c.Seq)
	}
	r.commits, r.events, r.tag = c.Seq, c.First+int64(len(c.Events))-1, int32(tag)
	until := w.setOwner()
	if !w.a.AnnouncesOnly {
		r.crashes = 0
	}
	args := []any{r.num, r.commits, r.events, r.tag, c.At, text(r.owner), until, r.fence, r.crashes}
	if !w.g.restores {
		w.notify(head)
		if err := w.notifyNear(head); err != nil {
			return err
		}
	}
	if r.head.equal(head) {
		w.t.queue(updateRun, args...)
	} else {
		w.t.queue(updateRunAndHead, append(args, head.status, head.activity, head.due, w.encode(head.waiting), head.usage, w.encode(head.failure))...)
		r.head = *head
	}
	maps.Copy(r.contexts, w.next)
	w.g.written = append(w.g.written, writtenCommit{r.num, c.Seq, tag})
	return nil
}

// setOwner has the commit acquire the run, release it, or both. It returns the end of the
// lease, -1 if it does not change.
func (w *commitWriter) setOwner() (until int64) {
	r, a := w.r, w.a
	until = -1
	if a.Acquire != nil {
		r.owner, r.fence, until = a.Acquire.Owner, a.Fence, w.t.now+a.Acquire.TTL.Milliseconds()
	}
	if a.Release {
		r.owner, until = "", 0
		r.fence++
	}
	return until
}

func (h *headRow) equal(o *headRow) bool {
	return h.status == o.status && h.activity == o.activity && h.due == o.due &&
		bytes.Equal(h.waiting, o.waiting) && bytes.Equal(h.usage, o.usage) && bytes.Equal(h.failure, o.failure)
}

// writeSideEffects queues the writes of a commit outside the journal.
func (w *commitWriter) writeSideEffects() error {
	if len(w.values) > 0 {
		w.t.keepUserValues(w.g.userStateWrite(w.a), w.values, w.userKey, valueOrigin{run: w.r.num, at: w.a.Commit.At})
	}
	if len(w.a.ConsumedMessages) > 0 {
		w.t.queue(`UPDATE queue q SET value = NULL, run = (SELECT holder FROM session s WHERE s.num = q.session) WHERE id = ANY($1)`,
			escapeTexts(w.a.ConsumedMessages))
	}
	if len(w.a.ConsumedPosts) > 0 {
		w.t.queue("DELETE FROM inbox WHERE id = ANY($1)", w.a.ConsumedPosts)
	}
	if w.session != nil {
		return w.updateSession()
	}
	return nil
}

func nullInt(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}
