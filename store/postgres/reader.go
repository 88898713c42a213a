package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"
)

// queryRow reads one row outside of a transaction; pgx.ErrNoRows if there is none. It waits
// for a server that restarts.
func (s *Store) queryRow(ctx context.Context, dest []any, query string, args ...any) error {
	return s.repeat(ctx, func(ctx context.Context) error {
		return decodingRow{s.pool.QueryRow(ctx, query, args...), s, ctx, nil}.Scan(dest...)
	})
}

// query reads rows outside of a transaction, and calls scan for each. If the connection is
// lost, the query is repeated unless scan has seen a row.
func (s *Store) query(ctx context.Context, scan func(row pgx.Row) error, query string, args ...any) error {
	seen := false
	var failed error
	err := s.repeat(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		err = s.eachRow(ctx, nil, rows, func(row pgx.Row) error {
			seen = true
			return scan(row)
		})
		if seen { // not repeated
			failed, err = err, nil
		}
		return err
	})
	return cmp.Or(err, failed)
}

// exec runs one statement that may be repeated without changing what it does.
func (s *Store) exec(ctx context.Context, op, query string, args ...any) (rows int64, err error) {
	err = s.write(ctx, op, func(t *tx) error {
		rows, err = t.exec(query, args...)
		return err
	})
	return rows, err
}

// rowSource reads rows, inside or outside of a transaction.
type rowSource interface {
	queryRow(dest []any, query string, args ...any) error
	query(scan func(row pgx.Row) error, query string, args ...any) error
}

// reader is a Store as a rowSource.
type reader struct {
	s   *Store
	ctx context.Context //nolint:containedctx // lives as long as one call
}

func (r reader) queryRow(dest []any, query string, args ...any) error {
	return r.s.queryRow(r.ctx, dest, query, args...)
}

func (r reader) query(scan func(row pgx.Row) error, query string, args ...any) error {
	return r.s.query(r.ctx, scan, query, args...)
}

// queryTexts reads a column of text.
func (s *Store) queryTexts(ctx context.Context, op, query string, args ...any) ([]string, error) {
	out := []string{}
	err := s.query(ctx, func(row pgx.Row) error {
		var t text
		err := row.Scan(&t)
		out = append(out, string(t))
		return err
	}, query, args...)
	if err != nil {
		return nil, s.wrap(op, err)
	}
	return out, nil
}
