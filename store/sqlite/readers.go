package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// readerPool is the pool of connections that only read. What is asked again is
// prepared once a connection: preparing takes longer than most of the answers.
type readerPool struct {
	*sql.DB

	mu    sync.Mutex
	stmts map[string]*sql.Stmt // by their text; closed with the pool
}

// maxPrepared bounds how many statements are kept prepared, since some are put
// together.
const maxPrepared = 96

// stmt returns the prepared statement, nil if there is none to be had.
func (r *readerPool) stmt(ctx context.Context, query string) *sql.Stmt {
	r.mu.Lock()
	s, full := r.stmts[query], len(r.stmts) >= maxPrepared
	r.mu.Unlock()
	if s != nil || full {
		return s
	}
	// Without the lock: it may wait for a connection.
	s, err := r.PrepareContext(ctx, query)
	if err != nil {
		return nil // asking says why
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stmts == nil {
		r.stmts = make(map[string]*sql.Stmt)
	}
	if first := r.stmts[query]; first != nil {
		_ = s.Close() //nolint:sqlclosecheck // another goroutine was faster
		return first
	}
	r.stmts[query] = s
	return s
}

// QueryContext is sql.DB's.
func (r *readerPool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := r.stmt(ctx, query); s != nil { //nolint:sqlclosecheck // kept
		return s.QueryContext(ctx, args...)
	}
	return r.DB.QueryContext(ctx, query, args...)
}

// QueryRowContext is sql.DB's.
func (r *readerPool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := r.stmt(ctx, query); s != nil { //nolint:sqlclosecheck // kept
		return s.QueryRowContext(ctx, args...)
	}
	return r.DB.QueryRowContext(ctx, query, args...)
}
