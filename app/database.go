package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// Database is an open store with what a process says about it.
type Database struct {
	*store.Full
	// Note says in what way a database that cannot be written was opened; "" for others.
	Note string
	// Settings returns what a server says of its settings and of the rights of the user;
	// nil for a file.
	Settings func(ctx context.Context) ([]ServerSetting, error)
	// RewrapKeys wraps the data keys of a server with the present master key, and returns how many it wrapped; nil for a
	// file.
	RewrapKeys func(ctx context.Context) (int, error)
	// Backup writes a copy of the database to a new file while it is in use; nil for a server.
	Backup func(ctx context.Context, path string) error
}

// ServerSetting is a setting of a database server, or a right of its user.
type ServerSetting struct {
	Name, Value string
	// Problem says what is wrong and what to do; "" if nothing is.
	Problem string
	// Warning says that Weir works nevertheless.
	Warning bool
}

// DatabaseOptions say what OpenDatabase is to do; the zero value opens for writing.
type DatabaseOptions struct {
	// ReadOnly makes no database, and accepts one that cannot be written; writes to it
	// fail.
	ReadOnly bool
	// Untrusted reads a file that another program may have changed.
	Untrusted bool
	// Sync is "full", "normal", or "" for full: see sqlite.Sync. A server has its own
	// setting, so it is refused with a URL unless it is "".
	Sync string
	// Storage says in what form a PostgreSQL database holds contents. Files hold them as they are, so that it is
	// refused with a path unless nothing is set.
	Storage config.Storage
}

// OpenDatabase opens the store that a string names: the URL of a PostgreSQL database, as
// postgres://user@host:5432/name, or the path of an SQLite file. Without ReadOnly it makes
// the tables, and the file.
func OpenDatabase(ctx context.Context, name string, o DatabaseOptions) (*Database, error) {
	sync, err := sqlite.ParseSync(o.Sync)
	if err != nil {
		return nil, &UsageError{err}
	}
	if store.IsURL(name) {
		if o.Sync != "" {
			return nil, usagef("sync %s: it is a setting of files; a PostgreSQL server has synchronous_commit", o.Sync)
		}
		return openServer(ctx, name, o)
	}
	if !o.Storage.IsZero() {
		return nil, usagef("storage: compression and encryption are settings of PostgreSQL databases, and %s is a file; remove the setting, and keep the file on an encrypted file system", name)
	}
	open := sqlite.Open
	if o.ReadOnly {
		open = sqlite.OpenReadOnly
	}
	s, err := open(ctx, name, sqlite.Options{Untrusted: o.Untrusted, Sync: sync})
	if err != nil {
		return nil, err // which names the file
	}
	return &Database{Full: store.Complete(s), Note: s.Note(), Backup: s.Backup}, nil
}

// CheckDatabaseExists fails with store.ErrNotFound if there is no file of that name. It does
// not ask a server; OpenDatabase does.
func CheckDatabaseExists(database string) error {
	if store.IsURL(database) {
		return nil
	}
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database at %s: %w", filepath.Clean(database), store.ErrNotFound)
	}
	return nil
}
