package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weir-run/weir/store"
)

// SQLSTATE codes, see https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	codeReadOnly         = "25006" // read_only_sql_transaction: a standby, or a user without rights
	codeNoRights         = "42501" // insufficient_privilege
	codeSerialization    = "40001"
	codeInvalidParameter = "22023"
	codeDeadlock         = "40P01"
	codeForeignKey       = "23503" // what a row refers to was deleted meanwhile
	codeLockTimeout      = "55P03" // lock_not_available
	codeDiskFull         = "53100"
	codeTooMany          = "53300" // too_many_connections
	codeShutdown         = "57P01" // admin_shutdown
	codeCrash            = "57P02" // crash_shutdown
	codeStarting         = "57P03" // cannot_connect_now
	codeCorrupt          = "XX001" // data_corrupted
	codeCorruptIndex     = "XX002" // index_corrupted
)

// wrap adds the operation to an error, and the store's error for what PostgreSQL reported.
func (s *Store) wrap(op string, err error) error {
	if err != nil && s.closed.Load() {
		return fmt.Errorf("%s: %w", op, store.ErrClosed)
	}
	return wrap(op, err)
}

func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w", op, store.ErrNotFound)
	}
	if kind := storeErrorOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%s: %w (%w)", op, kind, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

func storeErrorOf(err error) error {
	switch codeOf(err) {
	case codeReadOnly, codeNoRights:
		return store.ErrReadOnly
	case codeDiskFull:
		return store.ErrFull
	case codeCorrupt, codeCorruptIndex:
		return store.ErrCorrupt
	}
	return nil
}

// codeOf returns the SQLSTATE of an error, "" for an error that is not the server's.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// errVanished: another transaction removed a row between two statements.
var errVanished = errors.New("a row was removed meanwhile")

// isConflict reports whether a transaction failed because of others, and can be repeated.
func isConflict(err error) bool {
	switch codeOf(err) {
	case codeSerialization, codeDeadlock, codeLockTimeout, codeForeignKey:
		return true
	}
	return errors.Is(err, errVanished)
}

// isDisconnected reports whether an error says that the server cannot be reached, or that the connection was lost.
func isDisconnected(err error) bool {
	switch code := codeOf(err); code {
	case "":
	case codeShutdown, codeCrash, codeStarting, codeTooMany:
		return true
	default:
		return strings.HasPrefix(code, "08") // connection_exception
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, pgx.ErrNoRows) {
		return false
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, errConnectionLost)
}

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

// requireRow makes a write that met no row an error.
func requireRow(what string, rows int64, err error) error {
	if err == nil && rows == 0 {
		return fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return err
}
