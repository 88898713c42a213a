package sqlite

import (
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"

	"github.com/weir-run/weir/store"
)

// Primary result codes, and the extended ones that say more than theirs, see
// https://www.sqlite.org/rescode.html.
const (
	codeBusy     = 5
	codeReadOnly = 8
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26

	codeSharedMemorySize = 4874 // no room for the index of the log
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
	if errors.Is(err, sql.ErrNoRows) { // which says no more than the store's word for it
		return fmt.Errorf("%s: %w", op, store.ErrNotFound)
	}
	if kind := storeErrorOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%s: %w (%w)", op, kind, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

func storeErrorOf(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return nil
	}
	if e.Code() == codeSharedMemorySize {
		return store.ErrFull
	}
	switch e.Code() & 0xff {
	case codeReadOnly:
		return store.ErrReadOnly
	case codeFull:
		return store.ErrFull
	case codeCorrupt, codeNotADB:
		return store.ErrCorrupt
	}
	return nil
}
