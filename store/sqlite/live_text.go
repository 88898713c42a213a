package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weir-run/weir/store"
)

// RequestLiveText implements store.LiveTextStore.
func (s *Store) RequestLiveText(ctx context.Context, runs []string, fresh bool, ttl time.Duration) error {
	list, err := json.Marshal(runs)
	if err != nil {
		return fmt.Errorf("request live text: %w", err)
	}
	now := s.clock()
	return s.write(ctx, "request live text", func(ctx context.Context) error {
		for _, q := range []struct {
			query string
			args  []any
		}{
			{"DELETE FROM live_reader WHERE until <= ?", []any{now.UnixMilli()}},
			{"DELETE FROM live_text WHERE run IN (SELECT num FROM run_row WHERE num = live_text.run AND (owner IS NULL OR until <= ?))", []any{now.UnixMilli()}},
			{`INSERT INTO live_reader (run, number, until) SELECT num, ?4, ?2 FROM run_row WHERE id IN (SELECT value FROM json_each(?1))
				ON CONFLICT (run) DO UPDATE SET number = number + ?3, until = max(until, excluded.until)`, []any{string(list), now.Add(ttl).UnixMilli(), fresh, now.UnixMilli()}},
		} {
			if _, err := s.prepared().ExecContext(ctx, q.query, q.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// PutLiveText implements store.LiveTextStore.
func (s *Store) PutLiveText(ctx context.Context, parts []store.LiveTextPart) error {
	return s.write(ctx, "write live text", func(ctx context.Context) error {
		for i := range parts {
			if err := s.putLiveText(ctx, &parts[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) putLiveText(ctx context.Context, p *store.LiveTextPart) error {
	if p.Whole {
		_, err := s.prepared().ExecContext(ctx, "DELETE FROM live_text WHERE run = (SELECT num FROM run_row WHERE id = ? AND fence = ?)", p.Run, p.Fence)
		if err != nil {
			return err
		}
	}
	_, err := s.prepared().ExecContext(ctx, "INSERT INTO live_text (run, writer, whole, body) SELECT num, ?, ?, ? FROM run_row WHERE id = ? AND fence = ?",
		p.Writer, p.Whole, string(p.Data), p.Run, p.Fence)
	return err
}

// RemoveLiveText implements store.LiveTextStore.
func (s *Store) RemoveLiveText(ctx context.Context, writers map[string]string) error {
	list, err := json.Marshal(writers)
	if err != nil {
		return fmt.Errorf("remove live text: %w", err)
	}
	_, err = s.exec(ctx, "remove live text", `DELETE FROM live_text WHERE number IN (SELECT t.number FROM json_each(?) w
		JOIN run_row r ON r.id = w.key JOIN live_text t ON t.run = r.num AND t.writer = w.value)`, string(list))
	return err
}

// LiveText implements store.LiveTextStore.
func (s *Store) LiveText(ctx context.Context, after map[string]int64) ([]store.LiveTextPart, error) {
	list, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("read live text: %w", err)
	}
	out := []store.LiveTextPart{}
	err = s.query(ctx, func(row scanner) error {
		var p store.LiveTextPart
		err := row.Scan(&p.Run, &p.Number, &p.Writer, &p.Whole, &p.Data)
		out = append(out, p)
		return err
	}, `SELECT r.id, t.number, t.writer, t.whole, t.body FROM json_each(?) w
		JOIN run_row r ON r.id = w.key JOIN live_text t ON t.run = r.num AND t.number > w.value ORDER BY t.number`, string(list))
	if err != nil {
		return nil, s.wrap("read live text", err)
	}
	return out, nil
}
