package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Rows are read in batches, so that no connection is held while the caller works.
const batchCommits = 256

// Commits yields the commits of a run after a number, as they were appended; the bodies of
// context changes are *convo.Change. See store.Journal.
func (s *Store) Commits(ctx context.Context, id string, afterSeq int64) iter.Seq2[engine.Commit, error] {
	return func(yield func(engine.Commit, error) bool) {
		num, err := s.number(ctx, id)
		if err != nil {
			yield(engine.Commit{}, err)
			return
		}
		seq := max(afterSeq, 0)
		levels, err := lineage{reader{s, ctx}}.sharedRanges(num, maxNumber)
		for i := 0; i < len(levels) && err == nil; i++ {
			var more bool
			seq, more, err = s.readRange(ctx, id, levels[i], seq, yield)
			if !more {
				return
			}
			if err == nil && seq < levels[i].upto && i < len(levels)-1 {
				err = fmt.Errorf("%w: commit %d is missing", store.ErrCorrupt, seq+1)
			}
		}
		if err != nil {
			yield(engine.Commit{}, s.wrap(fmt.Sprintf("read run %s after commit %d", id, seq), err))
		}
	}
}

// readRange yields the commits of a range after a number, and returns the number of the last
// one; more is false if the caller wants no more.
func (s *Store) readRange(ctx context.Context, id string, from sharedRange, seq int64, yield func(engine.Commit, error) bool) (last int64, more bool, err error) {
	for seq < from.upto {
		rows, err := s.commitRows(ctx, from.num, seq, from.upto)
		if err != nil {
			return seq, true, err
		}
		for i := range rows {
			c, err := rows[i].decode(id)
			if err == nil && c.Seq != seq+1 {
				err = fmt.Errorf("%w: commit %d is missing", store.ErrCorrupt, seq+1)
			}
			if err != nil {
				return seq, true, err
			}
			if !yield(c, nil) {
				return seq, false, nil
			}
			seq = c.Seq
		}
		if len(rows) < batchCommits {
			break
		}
	}
	return seq, true, nil
}

// commitRow is a row of run_commit.
type commitRow struct {
	seq, first, count, at int64
	tag                   int32
	payload               []byte
}

// commitRows reads at most batchCommits rows after a number.
func (s *Store) commitRows(ctx context.Context, num, after, upto int64) ([]commitRow, error) {
	return commitRowsOf(reader{s, ctx}, num, after, upto)
}

func commitRowsOf(q rowSource, num, after, upto int64) (out []commitRow, err error) {
	err = q.query(func(row pgx.Row) error {
		var c commitRow
		err := row.Scan(&c.seq, &c.first, &c.count, &c.at, &c.tag, &c.payload)
		out = append(out, c)
		return err
	}, `SELECT seq, first, count, at, tag, payload FROM run_commit WHERE run = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4`,
		num, after, upto, batchCommits)
	return out, err
}

func (c *commitRow) decode(run string) (engine.Commit, error) {
	events, err := store.DecodePayload(c.payload)
	if err == nil && int64(len(events)) != c.count {
		err = fmt.Errorf("it has %d events, and its row says %d", len(events), c.count)
	}
	if err != nil {
		return engine.Commit{}, fmt.Errorf("commit %d: %w", c.seq, corruptError(err))
	}
	return engine.Commit{Run: run, Seq: c.seq, First: c.first, At: c.at, Events: events}, nil
}

// corruptError marks what cannot be decoded as damaged, unless a newer build wrote it.
func corruptError(err error) error {
	for _, known := range []error{engine.ErrUnknownEvent, engine.ErrNewerEvent, store.ErrCorrupt, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
}

// number returns the number of a run in other tables; store.ErrNotFound.
func (s *Store) number(ctx context.Context, id string) (num int64, err error) {
	err = s.queryRow(ctx, []any{&num}, "SELECT num FROM run WHERE id = $1", text(id))
	return num, s.wrap("run "+id, err)
}

// Messages returns the messages of a context; see store.Journal.
func (s *Store) Messages(ctx context.Context, run, conversation string, from, to int) ([]convo.Message, error) {
	l, h, err := s.contextOf(ctx, run, conversation)
	if err != nil {
		return nil, err
	}
	out := []convo.Message{}
	if h.id == 0 || from >= to {
		return out, nil
	}
	parts, err := l.stretches(h, int64(max(from, 0)), int64(to))
	if err == nil {
		out, err = s.messagesIn(ctx, parts)
	}
	if err != nil {
		return nil, s.wrap("messages of run "+run, err)
	}
	return out, nil
}

// messagesIn reads the messages of stretches, the last stretch first.
func (s *Store) messagesIn(ctx context.Context, parts []stretch) ([]convo.Message, error) {
	out := []convo.Message{}
	for _, p := range slices.Backward(parts) {
		var found []messageBytes
		err := s.query(ctx, func(row pgx.Row) error {
			var m messageBytes
			err := row.Scan(m.columns()...)
			found = append(found, m)
			return err
		}, `SELECT `+messageBytesColumns+` FROM message m JOIN run_commit c ON c.run = m.run AND c.seq = m.seq
			WHERE m.context = $1 AND m.position >= $2 AND m.position < $3 ORDER BY m.position`, p.context, p.from, p.to)
		if err == nil {
			err = s.cutEncoded(ctx, found)
		}
		for i := 0; i < len(found) && err == nil; i++ {
			var m convo.Message
			m, err = store.DecodePayloadMessage(found[i].data)
			out = append(out, m)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// FindMessage returns the highest position below n of a message with an id; see
// store.Journal.
func (s *Store) FindMessage(ctx context.Context, run, conversation, message string, n int) (int, error) {
	l, h, err := s.contextOf(ctx, run, conversation)
	if err != nil || h.id == 0 {
		return -1, err
	}
	parts, err := l.stretches(h, 0, int64(n))
	if err != nil {
		return -1, s.wrap("messages of run "+run, err)
	}
	for _, p := range parts {
		var at *int64
		err := s.queryRow(ctx, []any{&at}, "SELECT max(position) FROM message WHERE context = $1 AND id = $2 AND position >= $3 AND position < $4",
			p.context, text(message), p.from, p.to)
		if err != nil {
			return -1, s.wrap("find message "+message, err)
		}
		if at != nil {
			return int(*at), nil
		}
	}
	return -1, nil
}
