package sqlite

import (
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"

	"github.com/weir-run/weir/store"
)

// Primary result codes, see https://www.sqlite.org/rescode.html.
const (
	codeCorrupt = 11
	codeFull    = 13
	codeNotADB  = 26
)

// wrap adds the operation to an error and the store's word for what SQLite
// reported, if there is one.
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
	if kind := kindOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%s: %w (%w)", op, kind, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

func kindOf(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Code() & 0xff {
	case codeFull:
		return store.ErrFull
	case codeCorrupt, codeNotADB:
		return store.ErrCorrupt
	}
	return nil
}
