package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A mark is what a transaction leaves of itself, so that its outcome is known where the
// connection was lost during the commit. The server's status of a transaction id does not tell
// it: ids that a crash lost are given out again, and another transaction with the id may have
// been committed. Each connection has one row, which holds the number of its last committed
// transaction.
type mark struct {
	connection []byte
	number     int64
}

// markKey is the key of a connection's mark in its custom data.
const markKey = "weir.mark"

// nextMark returns the mark of the next transaction of a connection.
func nextMark(conn *pgx.Conn) mark {
	data := conn.PgConn().CustomData()
	m, ok := data[markKey].(mark)
	if !ok {
		m.connection = make([]byte, 16)
		_, _ = rand.Read(m.connection) // never fails
	}
	m.number++
	data[markKey] = m
	return m
}

// setMark marks the transaction with the statements that are sent next.
func (t *tx) setMark() {
	t.mark = nextMark(t.conn)
	t.queue(`INSERT INTO transaction_mark (connection, number, at) VALUES ($1, $2, $3)
		ON CONFLICT (connection) DO UPDATE SET number = excluded.number, at = excluded.at`, t.mark.connection, t.mark.number, t.now)
}

// marksKept is how long the marks of closed connections are kept: longer than any process waits
// for the outcome of a transaction.
const marksKept = 24 * time.Hour

// removeOldMarks removes the marks of connections that have made no transaction for long.
func (s *Store) removeOldMarks(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, "DELETE FROM transaction_mark WHERE at < coalesce($1::bigint, weir_now()) - $2", s.nowArg(), marksKept.Milliseconds())
	return err
}

// settle finds out what became of a marked transaction after its connection was lost. The error
// is nil if it was committed, and errConnectionLost if it was not.
func (s *Store) settle(ctx context.Context, id string, m mark, lost error) error {
	return s.settleBy(ctx, id, lost, func(ctx context.Context) (committed bool, err error) {
		err = s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM transaction_mark WHERE connection = $1 AND number = $2)", m.connection, m.number).Scan(&committed)
		return committed, err
	})
}

// settleBy asks until a server answers whether a transaction was committed, once the server has
// ended it. The error is nil if it was committed, and errConnectionLost if it was not.
func (s *Store) settleBy(ctx context.Context, id string, lost error, isCommitted func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.ReconnectTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		committed, err := false, s.hasEnded(ctx, id)
		if err == nil {
			committed, err = isCommitted(ctx)
		}
		switch {
		case errors.Is(err, errInProgress):
		case err == nil && committed:
			return nil
		case err == nil:
			return fmt.Errorf("%w: %w", errConnectionLost, lost)
		case !isDisconnected(err):
			return fmt.Errorf("%w, and cannot be found out: %w", errUnknownOutcome, err)
		}
		if e := pause(ctx, attempt); e != nil {
			return fmt.Errorf("%w, and the server cannot be asked: %w", errUnknownOutcome, err)
		}
	}
}

// errInProgress: the server is still ending a transaction.
var errInProgress = errors.New("the transaction has not ended")

// hasEnded returns errInProgress while the server is still ending a transaction. One that it
// does not know, as after a crash or a failover that lost it, has ended.
func (s *Store) hasEnded(ctx context.Context, id string) error {
	var status *string
	err := s.pool.QueryRow(ctx, "SELECT pg_xact_status($1::text::xid8)", id).Scan(&status)
	switch {
	case codeOf(err) == codeInvalidParameter: // the id is of the future
		return nil
	case err == nil && status != nil && *status == "in progress":
		return errInProgress
	}
	return err
}
