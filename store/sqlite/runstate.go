package sqlite

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"hash/maphash"
	"unsafe"
	"weak"

	"github.com/weir-run/weir/engine"
)

// maxRuns is how many runs the writer remembers; forgetting one costs a few
// reads, and that its next commits refer to fewer of the earlier ones.
const maxRuns = 1024

// runCache is what the writer remembers of runs it appends to. A run's entry
// is valid as long as its fence: no other process can have appended in between. What was
// kept under an earlier one can still be referred to, since rows do not change.
type runCache struct {
	byID      map[string]*runState
	bySession map[int64]*deltaBases // by session
}

// runState is what the writer remembers of one run.
type runState struct {
	num, root  int64
	salt       []byte
	base       sharedBase
	round      roundInfo
	fence      int64
	crashes    int
	head       *headRow // as written last; nil is not known
	contexts   map[string]*contextState
	recent     recentValues
	large      largeTexts
	chain      chainState
	deltaBases *deltaBases // a session's is that of all its rounds
}

// contextState is a context with its next position. Its messages are rows of
// the context id; row is its own row, or minus the num of a round that has none
// for it.
type contextState struct {
	id, next, row int64
}

// drop forgets a run, whose last commits may not have been kept.
func (c *runCache) drop(id string) {
	if r := c.byID[id]; r != nil {
		delete(c.bySession, r.round.session)
		delete(c.byID, id)
	}
}

// load returns the state of a run, nil if there is no such run.
func (c *runCache) load(w *writeTx, id string, fence int64) (*runState, error) {
	old := c.byID[id]
	if old != nil && old.fence == fence {
		return old, nil
	}
	r := &runState{fence: fence, contexts: map[string]*contextState{}}
	if old != nil {
		r.recent, r.large, r.deltaBases = old.recent, old.large, old.deltaBases
	}
	err := w.prepared().QueryRowContext(w.ctx,
		`SELECT r.num, r.root, coalesce(o.salt, s.salt), coalesce(r.base, 0), coalesce(r.base_seq, 0), coalesce(r.base_last, 0),
			coalesce(r.session, 0), coalesce(r.round, 0), coalesce(h.context, 0), coalesce(r.first, 0), coalesce(r.folded, 0),
			coalesce((SELECT count FROM run_crash k WHERE k.run = r.num), 0)
		FROM run_row r LEFT JOIN run_row o ON o.num = r.root LEFT JOIN session s ON s.num = -r.root
		LEFT JOIN session h ON h.num = r.session WHERE r.id = ?`, id,
	).Scan(&r.num, &r.root, &r.salt, &r.base.run, &r.base.seq, &r.base.last,
		&r.round.session, &r.round.number, &r.round.context, &r.round.first, &r.round.folded, &r.crashes)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.byID == nil || len(c.byID) >= maxRuns {
		c.byID, c.bySession = make(map[string]*runState), make(map[int64]*deltaBases)
	}
	c.byID[id] = r
	if r.deltaBases == nil {
		r.deltaBases = c.deltaBasesOf(r.round.session)
	}
	return r, nil
}

// deltaBasesOf returns the one that a new run's commits are compared by.
func (c *runCache) deltaBasesOf(session int64) *deltaBases {
	if l := c.bySession[session]; session != 0 && l != nil {
		return l
	}
	l := &deltaBases{seed: maphash.MakeSeed()}
	if session != 0 {
		c.bySession[session] = l
	}
	return l
}

// context returns a context's state, nil if it is not in the database.
func (r *runState) context(w *writeTx, name string) (*contextState, error) {
	if c := r.contexts[name]; c != nil {
		return c, nil
	}
	var h contextRef
	err := w.prepared().QueryRowContext(w.ctx, `SELECT id, start, coalesce(source, 0), coalesce(kind, '')
		FROM context c WHERE run = ? AND name = ?`, r.num, name).Scan(&h.id, &h.start, &h.source, &h.kind)
	if errors.Is(err, sql.ErrNoRows) {
		if name != engine.MainContext || r.round.folded&foldedMain == 0 {
			return nil, nil
		}
		h, err = contextRef{id: -r.num, start: r.round.first, source: r.round.context, kind: fromSession}, nil
	}
	if err != nil {
		return nil, err
	}
	c := &contextState{id: h.messageContext(), row: h.id}
	if c.next, err = w.lineage().nextPosition(c.id, h.start); err != nil {
		return nil, err
	}
	r.contexts[name] = c
	return c, nil
}

// mainRange returns where the messages of the run's main context are rows, and what
// their positions are counted from in the rows of commits.
func (r *runState) mainRange() (context, first int64) {
	if r.round.session != 0 {
		return r.round.context, r.round.first
	}
	if c := r.contexts[engine.MainContext]; c != nil {
		return c.id, 0
	}
	return 0, 0
}

// digest identifies the JSON of a value within a tree of runs: half of a
// SHA-256, so that equal digests of different values are not to be found.
type digest [sha256.Size / 2]byte

func (r *runState) digest(body []byte) digest {
	h := sha256.New()
	_, _ = h.Write(r.salt) // a hash never fails
	_, _ = h.Write(body)
	var sum [sha256.Size]byte
	return digest(h.Sum(sum[:0])[:len(digest{})])
}

// valuePlace is where a text or value is stored: as a value, or as the content of a
// message.
type valuePlace struct {
	value             int64
	context, position int64
	seq               int64 // the commit that stored it
	index             int   // of a message among those of its commit
}

// largeText is the length from which a text is known by its place in memory.
const largeText = 16 << 10

// maxLargeTexts is how many of them are remembered for a run.
const maxLargeTexts = 64

// textPlace is where a text is in memory. A weak pointer is equal to another only if both
// were made of the same text, also after that is gone, and keeps none alive.
type textPlace struct {
	data   weak.Pointer[byte]
	length int
}

func placeOf(s string) textPlace {
	return textPlace{weak.Make(unsafe.StringData(s)), len(s)} //nolint:gosec // the address alone is compared
}

// largeTexts are the digests of large texts, so that one that several ports pass on is
// neither written as JSON nor hashed for each of them.
type largeTexts map[textPlace]digest

func (l *largeTexts) put(at textPlace, d digest) {
	if *l == nil || len(*l) >= maxLargeTexts {
		*l = make(largeTexts)
	}
	(*l)[at] = d
}

// maxRecent is how many places are remembered for a run.
const maxRecent = 512

// recentValues remembers where the latest texts of a run are stored, oldest first
// forgotten.
type recentValues struct {
	places map[digest]valuePlace
	order  []digest
	head   int
}

func (r *recentValues) get(d digest) (valuePlace, bool) {
	p, ok := r.places[d]
	return p, ok
}

func (r *recentValues) put(d digest, p valuePlace) {
	if r.places == nil {
		r.places = make(map[digest]valuePlace)
	}
	if _, known := r.places[d]; known {
		r.places[d] = p
		return
	}
	if len(r.order) < maxRecent {
		r.order = append(r.order, d)
	} else {
		delete(r.places, r.order[r.head])
		r.order[r.head] = d
		r.head = (r.head + 1) % maxRecent
	}
	r.places[d] = p
}
