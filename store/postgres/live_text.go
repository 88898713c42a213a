package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// RequestLiveText implements store.LiveTextStore.
func (s *Store) RequestLiveText(ctx context.Context, runs []string, fresh bool, ttl time.Duration) error {
	more := 0
	if fresh {
		more = 1
	}
	err := s.write(ctx, "request live text", func(t *tx) error {
		if err := t.flush(); err != nil { // t.now is read with it
			return err
		}
		t.queue("DELETE FROM live_reader WHERE run IN (SELECT run FROM live_reader WHERE until <= $1 FOR UPDATE SKIP LOCKED)", t.now)
		t.queue("DELETE FROM live_text WHERE run IN (SELECT num FROM run WHERE num IN (SELECT run FROM live_text) AND (owner = '' OR until <= $1))", t.now)
		t.queue(`INSERT INTO live_reader (run, number, until) SELECT num, $4, $2 FROM run WHERE id = ANY($1) ORDER BY num
			ON CONFLICT (run) DO UPDATE SET number = live_reader.number + $3, until = greatest(live_reader.until, excluded.until)`,
			escapeTexts(runs), t.now+ttl.Milliseconds(), more, t.now)
		return t.flush()
	})
	if err == nil && fresh {
		s.notices.report(store.TopicInbox, runs...)
	}
	return err
}

// PutLiveText implements store.LiveTextStore.
func (s *Store) PutLiveText(ctx context.Context, parts []store.LiveTextPart) error {
	runs := make([]string, len(parts))
	err := s.write(ctx, "write live text", func(t *tx) error {
		for i := range parts {
			p := &parts[i]
			runs[i] = p.Run
			key, err := t.dataKeyOfRun(p.Run)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if p.Whole {
				t.queue("DELETE FROM live_text WHERE run = (SELECT num FROM run WHERE id = $1 AND fence = $2)", text(p.Run), p.Fence)
			}
			t.queue("INSERT INTO live_text (run, writer, whole, body) SELECT num, $3, $4, $5 FROM run WHERE id = $1 AND fence = $2",
				text(p.Run), p.Fence, text(p.Writer), p.Whole, s.encode(key, notNil(p.Data)))
		}
		return t.flush()
	})
	if err == nil {
		s.notices.report(store.TopicLiveText, runs...)
	}
	return err
}

// RemoveLiveText implements store.LiveTextStore.
func (s *Store) RemoveLiveText(ctx context.Context, writers map[string]string) error {
	return s.write(ctx, "remove live text", func(t *tx) error {
		for run, writer := range writers { // order: each row is deleted by its writer alone.
			t.queue("DELETE FROM live_text WHERE run = (SELECT num FROM run WHERE id = $1) AND writer = $2", text(run), text(writer))
		}
		return t.flush()
	})
}

// LiveText implements store.LiveTextStore.
func (s *Store) LiveText(ctx context.Context, after map[string]int64) ([]store.LiveTextPart, error) {
	runs, numbers := make([]string, 0, len(after)), make([]int64, 0, len(after))
	for run, number := range after { // order: the parts are sorted by the query.
		runs, numbers = append(runs, run), append(numbers, number)
	}
	out := []store.LiveTextPart{}
	err := s.query(ctx, func(row pgx.Row) error {
		var p store.LiveTextPart
		err := row.Scan(into(&p.Run), &p.Number, into(&p.Writer), &p.Whole, &p.Data)
		out = append(out, p)
		return err
	}, `SELECT r.id, t.number, t.writer, t.whole, t.body FROM unnest($1::text[], $2::bigint[]) AS w (run, number)
		JOIN run r ON r.id = w.run JOIN live_text t ON t.run = r.num AND t.number > w.number ORDER BY t.number`, escapeTexts(runs), numbers)
	if err != nil {
		return nil, s.wrap("read live text", err)
	}
	return out, nil
}
