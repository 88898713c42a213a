package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/weir-run/weir/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

func migrations() fs.FS {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files
}

// newestVersion returns the version of the schema that this build expects.
func newestVersion() (int64, error) {
	names, err := fs.Glob(migrations(), "*.sql") // sorted
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("no migrations: %w", err)
	}
	return goose.NumericComponent(names[len(names)-1])
}

// checkVersion fails unless the schema is the one that this build expects.
func (s *Store) checkVersion(ctx context.Context) error {
	have, err := schemaVersion(ctx, s.pool)
	if err != nil {
		return err
	}
	want, err := newestVersion()
	switch {
	case err != nil:
		return err
	case have == 0:
		return errNoTables
	case have > want:
		return newerError(have, want)
	case have < want:
		return fmt.Errorf("the schema has version %d and this build needs %d; a command that writes, such as `weir run`, upgrades it: %w", have, want, store.ErrReadOnly)
	}
	return nil
}

var errNoTables = fmt.Errorf("the database has no tables of Weir; a command that writes, such as `weir run`, makes them: %w", store.ErrNotFound)

func newerError(have, want int64) error {
	return fmt.Errorf("schema version %d and this build knows up to %d; use the version of Weir that upgraded it: %w", have, want, store.ErrNewerVersion)
}

// rowQuerier is a pool or a connection.
type rowQuerier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// schemaVersion returns the version of the schema, 0 if there is none.
func schemaVersion(ctx context.Context, q rowQuerier) (version int64, err error) {
	err = q.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version)
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == "42P01" { // undefined_table
		return 0, nil
	}
	return version, err
}

// migrationLock is the key of the advisory lock under which one process migrates.
const migrationLock = 0x77656972 // "weir"

// migrate brings the schema up to date, one process at a time.
func migrate(ctx context.Context, config *pgx.ConnConfig) error {
	config = config.Copy()
	for _, limit := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		config.RuntimeParams[limit] = "0" // a migration may rewrite a large table
	}
	db := stdlib.OpenDB(*config)
	defer db.Close() //nolint:errcheck // what was migrated is committed
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	have, err := schemaVersion(ctx, conn)
	err = cmp.Or(err, conn.Close(ctx))
	if err != nil {
		return err
	}
	want, err := newestVersion()
	switch {
	case err != nil:
		return err
	case have == want:
		return nil
	case have > want:
		return newerError(have, want)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(migrationLock))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations(),
		goose.WithDisableGlobalRegistry(true), goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return wrap("upgrade the schema", err)
	}
	return nil
}
