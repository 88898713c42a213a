package sqlite

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Rows are read in batches, so that no read stays open while the caller works.
const (
	batchCommits = 256
	batchText    = 4 << 20 // bytes after which a batch ends early
)

// Commits iterates over a run's commits after a sequence number, as they were
// appended; the bodies of context changes are *convo.Change. Those appended
// meanwhile may or may not come. Errors are store.ErrNotFound and
// store.ErrCorrupt; the iteration ends with the first.
func (s *Store) Commits(ctx context.Context, id string, afterSeq int64) iter.Seq2[engine.Commit, error] {
	return func(yield func(engine.Commit, error) bool) {
		num, err := s.number(ctx, id)
		if err != nil {
			yield(engine.Commit{}, err)
			return
		}
		seq := max(afterSeq, 0)
		levels, err := lineage{ctx, s.reader}.sharedRanges(num, maxNumber)
		for i := 0; i < len(levels) && err == nil; i++ {
			r := commitReader{s: s, run: id, num: levels[i].num, upto: levels[i].upto, bases: map[int64]*tokenizedText{}}
			var more bool
			if seq, more, err = r.read(ctx, seq, yield); !more {
				return
			}
			if err == nil && seq < r.upto && i < len(levels)-1 {
				err = fmt.Errorf("%w: commit %d is missing", store.ErrCorrupt, seq+1)
			}
		}
		if err != nil {
			yield(engine.Commit{}, s.wrap(fmt.Sprintf("read run %s after commit %d", id, seq), err))
		}
	}
}

// read yields the commits after one, and returns the number of the last; more is
// false if the reader wants no more.
func (r *commitReader) read(ctx context.Context, seq int64, yield func(engine.Commit, error) bool) (last int64, more bool, err error) {
	for seq < r.upto && err == nil {
		var commits []engine.Commit
		commits, err = r.batch(ctx, seq)
		for _, c := range commits {
			if !yield(c, nil) {
				return seq, false, nil
			}
			seq = c.Seq
		}
		if len(commits) == 0 {
			break
		}
	}
	return seq, true, err
}

const selectNumber = "SELECT num FROM run WHERE id = ?"

// number returns the run's number in other tables.
func (s *Store) number(ctx context.Context, id string) (int64, error) {
	var num int64
	err := s.reader.QueryRowContext(ctx, selectNumber, id).Scan(&num)
	return num, s.wrap("run "+id, err)
}

type commitReader struct {
	s     *Store
	run   string
	num   int64                    // of the run that the commits are rows of
	upto  int64                    // the last commit to read
	bases map[int64]*tokenizedText // by the id of the commit's row

	// strict refuses what is not written as Weir writes it, of commits after that
	// number.
	strict bool
	after  int64
}

// mustBeCanonical reports whether a commit has to be written as Weir writes it.
func (r *commitReader) mustBeCanonical(seq int64) bool { return r.strict && seq > r.after }

type commitRow struct {
	seq, at, last, base int64
	spans               []int64
	main                [2]int64 // the context that the run's main messages are rows of, and where they are counted from
	text                []byte
	ranges              string // what spans are read from
}

// batch reads the next commits; those before an error come with it.
func (r *commitReader) batch(ctx context.Context, after int64) ([]engine.Commit, error) {
	rows, err := r.rows(ctx, after)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	u := newUnpacker(ctx, r.s)
	u.strict = r.mustBeCanonical(rows[0].seq)
	if err := u.prefetch(rows); err != nil {
		return nil, err
	}
	codec := engine.Codec{DecodeValue: u.decodeValue, DecodeBody: u.decodeBody}
	commits := make([]engine.Commit, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		u.spans, u.next = row.spans, 0
		events, err := codec.Decode(row.text)
		if err == nil && r.mustBeCanonical(row.seq) {
			err = row.checkCanonical(u)
		}
		if err != nil {
			return commits, fmt.Errorf("commit %d: %w", row.seq, corruptError(err))
		}
		commits = append(commits, engine.Commit{
			Run: r.run, Seq: row.seq, First: row.last - int64(len(events)) + 1, At: row.at, Events: events,
		})
	}
	return commits, nil
}

// checkCanonical checks that a commit of which events were read is written as Weir writes it:
// its text, and which messages it appended.
func (c *commitRow) checkCanonical(u *unpacker) error {
	appended := 0
	for s := range slices.Chunk(c.spans, 3) {
		appended += int(s[2])
	}
	if u.next != appended {
		return notCanonical("it says that it appended %d messages, and its events append %d", appended, u.next)
	}
	for part := range strings.SplitSeq(c.ranges, ",") {
		if part != "" && !wholeNumber([]byte(part)) {
			return notCanonical("which messages it appended is written as %.40q", c.ranges)
		}
	}
	u.next = 0
	return checkCanonicalCommit(c.text, u)
}

// corruptError makes what cannot be decoded a damage, unless it is of a newer build.
func corruptError(err error) error {
	for _, known := range []error{
		engine.ErrUnknownEvent, engine.ErrNewerEvent, store.ErrCorrupt, store.ErrFull,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	if storeErrorOf(err) != nil {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
}

// rows reads rows with their texts in full.
func (r *commitReader) rows(ctx context.Context, after int64) ([]commitRow, error) {
	out, err := r.scan(ctx, after+1, batchCommits)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].seq != after+1+int64(i) {
			return nil, fmt.Errorf("%w: commit %d is missing", store.ErrCorrupt, after+1+int64(i))
		}
		if err := r.applyDelta(ctx, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const selectCommits = `SELECT c.id & 0xffffffff, c.at + r.created, c.last, coalesce(c.base, 0), coalesce(c.messages, ''), c.events,
	coalesce((SELECT s.context FROM session s WHERE s.num = r.session), (SELECT x.id FROM context x WHERE x.run = r.num AND x.name = '` + engine.MainContext + `'), 0),
	coalesce(r.first, 0)
	FROM run_commit c JOIN run_row r ON r.num = ? WHERE c.id >= ? AND c.id < ? ORDER BY c.id LIMIT ?`

func (r *commitReader) scan(ctx context.Context, from int64, limit int) (out []commitRow, err error) {
	size := 0
	err = r.s.query(ctx, func(row scanner) error {
		if size >= batchText {
			return errStopScan
		}
		var c commitRow
		var spans string
		err := row.Scan(&c.seq, &c.at, &c.last, &c.base, &spans, &c.text, &c.main[0], &c.main[1])
		if err != nil {
			return err
		}
		c.ranges = spans
		c.spans, err = parseSpans(spans, c.main)
		size += len(c.text)
		out = append(out, c)
		return err
	}, selectCommits, r.num, r.num*rowsPerParent+from, r.num*rowsPerParent+min(r.upto+1, rowsPerParent), limit)
	return out, err
}

// applyDelta replaces a text that is differences by what it means, and remembers
// one that is not, since others may differ from it.
func (r *commitReader) applyDelta(ctx context.Context, c *commitRow) error {
	if c.base == 0 {
		if len(c.text) <= maxDeltaBaseText {
			r.remember(r.num*rowsPerParent+c.seq, c)
		}
		return nil
	}
	id := unpackBase(r.num, c.base) // of the same run, or of an earlier round of the session
	base := r.bases[id]
	if base == nil {
		of := commitReader{s: r.s, num: id / rowsPerParent, upto: maxNumber}
		rows, err := of.scan(ctx, id%rowsPerParent, 1)
		if err != nil {
			return err
		}
		if len(rows) != 1 || rows[0].seq != id%rowsPerParent || rows[0].base != 0 {
			return fmt.Errorf("%w: commit %d, which commit %d differs from, is missing", store.ErrCorrupt, c.base, c.seq)
		}
		base = r.remember(id, &rows[0])
	}
	text, err := applyDiff(base, c.text)
	if err != nil {
		return fmt.Errorf("%w: commit %d: %w", store.ErrCorrupt, c.seq, err)
	}
	if r.mustBeCanonical(c.seq) {
		err = checkCanonicalDiff(base, c.text, text)
	}
	c.text = text
	return err
}

// maxRememberedText bounds the texts a reader remembers; a forgotten one is read again.
const maxRememberedText = 256

func (r *commitReader) remember(id int64, c *commitRow) *tokenizedText {
	if len(r.bases) == maxRememberedText {
		clear(r.bases)
	}
	o := tokenize(c.text, maphash.MakeSeed())
	r.bases[id] = &o
	return &o
}

// prefetch fetches what rows refer to.
func (u *unpacker) prefetch(rows []commitRow) error {
	// Most commits of a run append to one context, where they left off.
	ranges := map[int64][2]int64{}
	for i := range rows {
		for s := range slices.Chunk(rows[i].spans, 3) {
			from, to := s[1], s[1]+s[2]
			if x, ok := ranges[s[0]]; ok {
				from, to = min(from, x[0]), max(to, x[1])
			}
			ranges[s[0]] = [2]int64{from, to}
		}
	}
	var ids []int64
	var err error
	for c, x := range ranges {
		if ids, err = u.fetchMessages(ids, c, x[0], x[1]); err != nil {
			return err
		}
	}
	for i := range rows {
		ids = u.addMissingValues(ids, rows[i].text)
	}
	return u.fetchValues(ids)
}

// Messages returns the messages of a context at positions from up to to, to
// not included, as they were appended. A context forked from another of its run
// begins at the position it was forked at; what lies before is its parent's and
// not returned. A context that is not there has none.
func (s *Store) Messages(ctx context.Context, id, contextID string, from, to int) ([]convo.Message, error) {
	out := []convo.Message{}
	parts, err := s.stretches(ctx, id, contextID, from, to)
	if err == nil && len(parts) > 0 {
		out, err = s.messages(ctx, parts)
	}
	if err != nil {
		return nil, s.wrap(fmt.Sprintf("messages of run %s, context %s", id, contextID), err)
	}
	return out, nil
}

// messages reads stretches, the last of which comes first.
func (s *Store) messages(ctx context.Context, parts []stretch) ([]convo.Message, error) {
	u := newUnpacker(ctx, s)
	var ids []int64
	var err error
	n := int64(0)
	for _, p := range parts {
		if ids, err = u.fetchMessages(ids, p.context, p.from, p.to); err != nil {
			return nil, err
		}
		n += p.to - p.from
	}
	if err := u.fetchValues(ids); err != nil {
		return nil, err
	}
	out := make([]convo.Message, 0, min(n, int64(len(u.messages))))
	for _, p := range slices.Backward(parts) {
		for at := p.from; at < p.to; at++ {
			m, err := u.message(p.context, at)
			if err != nil {
				return nil, err
			}
			out = append(out, *m)
		}
	}
	return out, nil
}

// stretches finds where the messages of a run's context lie, the last first.
func (s *Store) stretches(ctx context.Context, id, contextID string, from, to int) ([]stretch, error) {
	num, err := s.number(ctx, id)
	if err != nil || from >= to {
		return nil, err
	}
	l := lineage{ctx, s.reader}
	h, err := l.findContext(num, contextID, maxNumber)
	if err != nil || h.id == 0 {
		return nil, err
	}
	return l.stretches(h, int64(max(from, 0)), int64(min(to, maxNumber)))
}
