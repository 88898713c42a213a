// Package postgres is a store in a PostgreSQL database, which many processes share.
//
// A commit is one row, and holds the exact bytes that the chain of its run digests. A
// message is a range of those bytes, so that it is stored once.
//
// It must not know how runs proceed: it keeps commits, returns them unchanged, and
// refuses what would corrupt them.
package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// Options tune a store; the zero value is right for most.
type Options struct {
	// MaxConnections limits the connections of this process; 0 is 8, or pool_max_conns of the URL.
	MaxConnections int
	// StatementTimeout limits a statement, LockTimeout the wait for a row that another process has locked; 0 is 30
	// and 10 seconds, or statement_timeout and lock_timeout of the URL.
	StatementTimeout, LockTimeout time.Duration
	// ReconnectTimeout limits how long a call waits for a server that cannot be reached, for example while it
	// restarts; 0 is 30 seconds.
	ReconnectTimeout time.Duration
	// ReadOnly migrates nothing, and refuses every write with store.ErrReadOnly.
	ReadOnly bool
	// Codec encodes the contents that are written; nil encodes none. A database with encrypted contents needs the master
	// keys of all: Open fails with codec.ErrMissingKey without them.
	Codec *codec.Codec

	// Clock tells the time by which leases expire and timers are due; nil is the clock of the database. It is for
	// tests: processes with different clocks must not share leases.
	Clock func() time.Time
}

const (
	defaultConnections      = 8
	defaultStatementTimeout = 30 * time.Second
	defaultLockTimeout      = 10 * time.Second
	defaultReconnectTimeout = 30 * time.Second
)

// Store is a store in a PostgreSQL database. It is safe for concurrent use, and so is the database between processes.
type Store struct {
	pool     *pgxpool.Pool
	opts     Options
	name     string // of the database, without the password
	note     string // how it was opened
	closed   atomic.Bool
	tokens   atomic.Pointer[func(convo.Message) int] // counts tokens; nil if tokens are not counted
	contexts idBlock
	notices  *notifier
	keys     *keyring

	mu   sync.Mutex // guards the following field
	runs map[string]*runState
}

// Open opens the database of a URL such as postgres://user:password@host:5432/name and
// upgrades its schema. With search_path in the URL, the tables are in that schema, which
// must exist. It fails with store.ErrNewerVersion if a newer version of Weir has upgraded the
// database, and with ErrUnsafe if the server acknowledges commits before they are durable.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	return open(ctx, url, o, false)
}

func open(ctx context.Context, url string, o Options, existing bool) (*Store, error) {
	config, err := poolConfig(url, &o)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", store.RedactURL(url), err)
	}
	s := &Store{pool: pool, opts: o, name: store.RedactURL(url), runs: map[string]*runState{}}
	s.notices, s.keys = newNotifier(s, config.ConnConfig), newKeyring(o.Codec, config)
	if err = s.prepare(ctx, config.ConnConfig, existing); err != nil {
		s.notices.close()
		s.keys.close()
		pool.Close()
		return nil, fmt.Errorf("open %s: %w", s.name, err)
	}
	return s, nil
}

// OpenExisting opens a database for a caller that only reads. It is Open where the database
// has tables of Weir and can be written. It makes no tables: a database without them is
// store.ErrNotFound. A standby, or a database whose user has no right to write, is opened with
// ReadOnly; Note says so.
func OpenExisting(ctx context.Context, url string, o Options) (*Store, error) {
	return open(ctx, url, o, true)
}

// Note says in what way a database that cannot be written was opened; "" for others.
func (s *Store) Note() string { return s.note }

// prepare checks the server and brings the schema up to date.
func (s *Store) prepare(ctx context.Context, config *pgx.ConnConfig, existing bool) error {
	if err := s.waitForServer(ctx); err != nil {
		return err
	}
	if err := s.checkDurability(ctx); err != nil {
		return err
	}
	if existing && !s.opts.ReadOnly {
		if err := s.checkWritable(ctx); err != nil {
			return err
		}
	}
	if s.opts.ReadOnly {
		if err := s.checkVersion(ctx); err != nil {
			return err
		}
		return s.checkKeys(ctx)
	}
	if err := migrate(ctx, config); err != nil {
		return err
	}
	if err := s.checkKeys(ctx); err != nil {
		return err
	}
	return s.removeOldMarks(ctx)
}

// checkWritable fails if the database has no tables, and makes the store read-only if they
// cannot be written.
func (s *Store) checkWritable(ctx context.Context) error {
	version, err := schemaVersion(ctx, s.pool)
	if err != nil {
		return err
	}
	if version == 0 {
		return errNoTables
	}
	err = s.queryRow(ctx, []any{&s.opts.ReadOnly}, `SELECT pg_is_in_recovery() OR NOT has_table_privilege('run', 'INSERT')`)
	if s.opts.ReadOnly {
		s.note = "the database cannot be written here; it is open for reading only"
	}
	return err
}

// poolConfig reads a URL and sets what it leaves open.
func poolConfig(url string, o *Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the URL of the database: %w", err) // pgx leaves the password out
	}
	switch {
	case o.MaxConnections > 0:
		config.MaxConns = int32(min(o.MaxConnections, 1000))
	case !strings.Contains(url, "pool_max_conns="):
		config.MaxConns = defaultConnections
	}
	for _, p := range []struct {
		name          string
		set, default_ time.Duration
	}{
		{"statement_timeout", o.StatementTimeout, defaultStatementTimeout},
		{"lock_timeout", o.LockTimeout, defaultLockTimeout},
		{"idle_in_transaction_session_timeout", 0, defaultStatementTimeout},
	} {
		_, given := config.ConnConfig.RuntimeParams[p.name]
		if d := p.set; d > 0 || !given {
			if d == 0 {
				d = p.default_
			}
			config.ConnConfig.RuntimeParams[p.name] = fmt.Sprint(d.Milliseconds())
		}
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "weir"
	}
	if o.ReadOnly {
		config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	}
	if o.ReconnectTimeout == 0 {
		o.ReconnectTimeout = defaultReconnectTimeout
	}
	return config, nil
}

// Close closes the connections. Later calls fail with store.ErrClosed.
func (s *Store) Close() error {
	if !s.closed.Swap(true) {
		s.notices.close()
		s.keys.close()
		s.pool.Close()
	}
	return nil
}

// CountTokens implements store.Capabilities.CountTokens: messages of sessions are kept with
// the number of their tokens.
func (s *Store) CountTokens(count func(convo.Message) int) { s.tokens.Store(&count) }

// nowArg returns the argument of a query for the present time: NULL stands for the clock of the
// database.
func (s *Store) nowArg() *int64 {
	if s.opts.Clock == nil {
		return nil
	}
	return new(s.opts.Clock().UnixMilli())
}

// check returns the error of a call that cannot be made.
func (s *Store) check(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}
