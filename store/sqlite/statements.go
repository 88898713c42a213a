package sqlite

import (
	"context"
	"database/sql"
)

// maxStatements bounds how many statements the writer keeps prepared. The texts are
// constants of this package.
const maxStatements = 128

// preparedConn is the writer's connection, with each statement prepared once: SQLite then
// parses its text once. The caller holds the mutex of the store, and every result is read
// before the next statement runs.
type preparedConn struct{ s *Store }

// QueryRowContext is sql.Conn.QueryRowContext.
func (c preparedConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if st := c.s.statement(ctx, query); st != nil { //nolint:sqlclosecheck // closed with the store
		return st.QueryRowContext(ctx, args...)
	}
	return c.s.conn.QueryRowContext(ctx, query, args...)
}

// ExecContext is sql.Conn.ExecContext.
func (c preparedConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if st := c.s.statement(ctx, query); st != nil { //nolint:sqlclosecheck // closed with the store
		return st.ExecContext(ctx, args...)
	}
	return c.s.conn.ExecContext(ctx, query, args...)
}

// statement returns a prepared statement; nil if there is none, and running the text then
// reports why.
func (s *Store) statement(ctx context.Context, query string) *sql.Stmt {
	if st := s.statements[query]; st != nil {
		return st
	}
	if len(s.statements) >= maxStatements {
		return nil
	}
	st, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil
	}
	if s.statements == nil {
		s.statements = make(map[string]*sql.Stmt)
	}
	s.statements[query] = st
	return st
}

// closeStatements closes what statement prepared.
func (s *Store) closeStatements() {
	for _, st := range s.statements {
		_ = st.Close() // the connection ends
	}
	s.statements = nil
}

func (s *Store) prepared() preparedConn { return preparedConn{s} }

func (w *writeTx) prepared() preparedConn { return preparedConn{w.s} }

// QueryContext is sql.Conn.QueryContext. The caller closes the rows before the same text runs
// again.
func (c preparedConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if st := c.s.statement(ctx, query); st != nil { //nolint:sqlclosecheck // closed with the store
		return st.QueryContext(ctx, args...)
	}
	return c.s.conn.QueryContext(ctx, query, args...)
}
