package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// Every transaction locks rows in this order: sessions by number, runs by id, then the state of users.
// A deadlock or a serialization error repeats the transaction.
const maxConflicts = 10

// tx is a transaction. Statements without a result are queued, and sent together with the
// next query or with the COMMIT, so that a group of commits takes two round trips.
type tx struct {
	s      *Store
	ctx    context.Context //nolint:containedctx // lives as long as one call
	cancel context.CancelFunc
	pooled *pgxpool.Conn
	conn   *pgx.Conn
	batch  pgx.Batch
	id     string // the server's id of the transaction, by which its outcome can be found out
	now    int64  // the present time by the store's clock
	mark   mark   // set by setMark

	deletes bool                      // markDeletion was called
	keys    map[string]*codec.DataKey // by user; see dataKey
}

var (
	// errConnectionLost: the connection was lost before the commit.
	errConnectionLost = errors.New("the connection to the database was lost")
	// errUnknownOutcome: the connection was lost while the server committed.
	errUnknownOutcome = errors.New("the connection was lost during the commit, whose outcome is unknown")
)

// write runs do in a transaction, which it repeats after a conflict with another, and after
// the connection was lost before the commit. If it is lost during the commit, write finds
// out what became of the transaction.
func (s *Store) write(ctx context.Context, op string, do func(t *tx) error) error {
	if s.opts.ReadOnly {
		return s.wrap(op, store.ErrReadOnly)
	}
	return s.wrap(op, s.repeat(ctx, func(ctx context.Context) error {
		t, err := s.begin(ctx)
		if err != nil {
			return err
		}
		defer t.release()
		if err := do(t); err != nil {
			return err
		}
		t.setMark()
		if err = t.commit(); !errors.Is(err, errUnknownOutcome) {
			return err
		}
		t.release() // settle needs a connection, and there may be no other
		return s.settle(ctx, t.id, t.mark, err)
	}))
}

// repeat calls do until it succeeds or fails with an error that another attempt would not
// change.
func (s *Store) repeat(ctx context.Context, do func(ctx context.Context) error) error {
	deadline := time.Now().Add(s.opts.ReconnectTimeout)
	for attempt := 1; ; attempt++ {
		if err := s.check(ctx); err != nil {
			return err
		}
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case isConflict(err) && attempt < maxConflicts:
		case isDisconnected(err) && time.Now().Before(deadline):
		default:
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// pause waits before another attempt, for up to a second.
func pause(ctx context.Context, attempt int) error {
	limit := min(time.Second, 5*time.Millisecond<<min(attempt, 10))
	t := time.NewTimer(limit/2 + rand.N(limit/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// transactionTimeout limits a transaction whose server does not answer at all.
const transactionTimeout = 2 * time.Minute

// begin starts a transaction. Once begun, it does not end early with the caller's context,
// so that its outcome is known; timeouts of the server limit it.
func (s *Store) begin(ctx context.Context) (*tx, error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	t := &tx{s: s, pooled: pooled, conn: pooled.Conn()}
	t.ctx, t.cancel = context.WithTimeout(context.WithoutCancel(ctx), transactionTimeout)
	t.queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	t.batch.Queue("SELECT pg_current_xact_id()::text, coalesce($1::bigint, weir_now())", s.nowArg()).
		QueryRow(func(row pgx.Row) error { return row.Scan(&t.id, &t.now) })
	return t, nil
}

// readSnapshot runs do in a transaction that only reads, and sees the database as of one moment. It is repeated if the
// connection is lost.
func (s *Store) readSnapshot(ctx context.Context, do func(t *tx) error) error {
	return s.repeat(ctx, func(ctx context.Context) error {
		pooled, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		t := &tx{s: s, pooled: pooled, conn: pooled.Conn()}
		t.ctx, t.cancel = context.WithTimeout(ctx, transactionTimeout)
		defer t.release()
		t.queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
		if err := do(t); err != nil {
			return err
		}
		return t.commit()
	})
}

// queue adds a statement to what is sent with the next query.
func (t *tx) queue(query string, args ...any) { t.batch.Queue(query, args...) }

// exec runs a statement and returns the number of its rows.
func (t *tx) exec(query string, args ...any) (int64, error) {
	var tag pgconn.CommandTag
	t.batch.Queue(query, args...).Exec(func(c pgconn.CommandTag) error {
		tag = c
		return nil
	})
	err := t.flush()
	return tag.RowsAffected(), err
}

// queryRow reads one row; pgx.ErrNoRows if there is none.
func (t *tx) queryRow(dest []any, query string, args ...any) error {
	var missing error
	t.batch.Queue(query, args...).QueryRow(func(row pgx.Row) error {
		err := decodingRow{row, t.s, t.ctx, t}.Scan(dest...)
		if errors.Is(err, pgx.ErrNoRows) {
			missing, err = err, nil
		}
		return err
	})
	return cmp.Or(t.flush(), missing)
}

// query calls scan for each row.
func (t *tx) query(scan func(row pgx.Row) error, query string, args ...any) error {
	t.batch.Queue(query, args...).Query(func(rows pgx.Rows) error { return t.s.eachRow(t.ctx, t, rows, scan) })
	return t.flush()
}

// flush sends what is queued.
func (t *tx) flush() error {
	if t.batch.Len() == 0 {
		return nil
	}
	batch := t.batch
	t.batch = pgx.Batch{}
	err := t.conn.SendBatch(t.ctx, &batch).Close()
	if err != nil && t.conn.IsClosed() && !isDisconnected(err) {
		err = fmt.Errorf("%w: %w", errConnectionLost, err)
	}
	return err
}

// commit sends what is queued, and COMMIT with it. The error is errUnknownOutcome if the
// connection was lost meanwhile.
func (t *tx) commit() error {
	var tag pgconn.CommandTag
	t.batch.Queue("COMMIT").Exec(func(c pgconn.CommandTag) error {
		tag = c
		return nil
	})
	err := t.flush()
	switch {
	case err != nil && isDisconnected(err):
		return fmt.Errorf("%w: %w", errUnknownOutcome, err)
	case err == nil && tag.String() != "COMMIT": // the server answers ROLLBACK after a failed statement
		return fmt.Errorf("the server answered %q to COMMIT", tag.String())
	}
	return err
}

// release ends a transaction that was not committed, and gives the connection back. A second
// call does nothing.
func (t *tx) release() {
	if t.pooled == nil {
		return
	}
	defer func() {
		t.cancel()
		t.pooled = nil
	}()
	defer t.pooled.Release() // closes a connection that is still in a transaction
	if !t.conn.IsClosed() && t.conn.PgConn().TxStatus() != 'I' {
		_, _ = t.conn.Exec(t.ctx, "ROLLBACK") // Release does it otherwise
	}
}
