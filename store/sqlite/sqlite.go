// Package sqlite is a store in a SQLite file. The views journal and message_text show
// the record in readable form in the sqlite3 shell.
//
// A commit is one row. Data that would be stored twice is stored once: messages in
// their own table, long texts and large values in another, and a commit that resembles
// an earlier one of its run as a difference.
//
// It must not know how runs proceed: it keeps commits, returns them unchanged, and
// refuses what would corrupt them.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/store"
)

// Options tune a store; the zero value is right for most.
type Options struct {
	// BusyTimeout bounds how long a write waits for other processes, which take turns by chance; 0 is 30
	// seconds.
	BusyTimeout time.Duration
	// Readers is the number of concurrent reads; 0 is 4.
	Readers int
	// Sync says when commits reach the disk; the zero value is SyncFull. It is that of this
	// process: others that use the file have their own.
	Sync Sync

	// Untrusted opens a database also where another program has put triggers or views
	// into it, or changed Weir's: to verify it, and for nothing else.
	Untrusted bool

	// Clock returns the time by which leases expire and timers are due; nil is the clock of
	// this machine.
	Clock func() time.Time

	driver   string // of database/sql; "" is sqlite
	noBackup bool   // before an upgrade
	backup   bool   // a file that Backup has made is accepted
	pageSize int    // bytes, of a new file; 0 is defaultPageSize
	maxPages int    // of the file; 0 is SQLite's own bound
}

// Store is a store in a SQLite file. It is safe for concurrent use, and so is
// the file between processes.
type Store struct {
	path   string
	now    func() time.Time // nil is time.Now
	sync   Sync
	reader *readerPool
	closed atomic.Bool
	// compactionDeferred: a deletion of this process has left its traces to a later Compact.
	compactionDeferred atomic.Bool
	tokens             atomic.Pointer[func(convo.Message) int] // tokens; nil if no counter is set

	mu               sync.Mutex // held by the writer; guards the fields below
	writer           *sql.DB
	conn             *sql.Conn // the one connection of writer
	stmts            preparedStatements
	statements       map[string]*sql.Stmt // by text; see preparedConn
	runs             runCache
	payload          sync.Pool // *[]byte, room for one; the garbage collector takes what is not used
	trajectoryTables trajectoryState

	expectedOnce    sync.Once // guards the schema that the migrations make
	expectedObjects map[string]schemaObject
	optionalObjects map[string]bool
	expectedErr     error

	note     string        // how it was opened for reading only
	readOnly bool          // nothing is written
	busy     time.Duration // how long a write waits for other processes
	mode     string        // openMode.query of a database that is open for reading only
	scratch  string        // the folder of a copy, which goes with the store
}

// Open opens the file at path, making it, and its folder, if there is none,
// and upgrading it where it is of an earlier version; before that it is copied
// to path + ".v<version>.backup". Errors are store.ErrNewerVersion, store.ErrCorrupt
// and store.ErrNotWeir (the file is not touched then), store.ErrForeignSchema if it has triggers
// or views that are not Weir's, and store.ErrFull.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	return open(ctx, path, opts, migrations())
}

// clock returns the present time, by which leases expire and timers are due.
func (s *Store) clock() time.Time {
	if s.now == nil {
		return time.Now()
	}
	return s.now()
}

// timeOr returns at, or the present time if at is zero.
func (s *Store) timeOr(at time.Time) time.Time {
	if at.IsZero() {
		return s.clock()
	}
	return at
}

// CountTokens implements store.Counting: messages of sessions are kept with how
// many tokens they have.
func (s *Store) CountTokens(count func(convo.Message) int) { s.tokens.Store(&count) }

// beginTx starts a transaction of the one writer; the caller holds s.mu.
func (s *Store) beginTx(ctx context.Context) error {
	if s.readOnly {
		return store.ErrReadOnly
	}
	return s.waitForTurn(ctx, func() error {
		_, err := s.stmts.begin.ExecContext(ctx)
		return err
	})
}

// endTx ends it. Once begun a transaction does not end early with the
// caller's context, so that its outcome is known.
func (s *Store) endTx(err error) error {
	if err == nil {
		if _, err = s.stmts.commit.ExecContext(context.Background()); err == nil {
			return nil
		}
	}
	if _, rollback := s.stmts.rollback.ExecContext(context.Background()); rollback != nil {
		// SQLite has rolled back already where the failure made it do so.
		return err
	}
	return err
}

// write runs fn in a transaction.
func (s *Store) write(ctx context.Context, op string, fn func(ctx context.Context) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.beginTx(ctx); err != nil {
		return s.wrap(op, err)
	}
	return s.wrap(op, s.endTx(fn(context.WithoutCancel(ctx))))
}

// query reads rows, calling scan for each; scan may end it with errEnough.
func (s *Store) query(ctx context.Context, scan func(row scanner) error, query string, args ...any) error {
	rows, err := s.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close() // Err says what failed
	for rows.Next() {
		if err := scan(rows); errors.Is(err, errStopScan) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanner is a row.
type scanner interface{ Scan(into ...any) error }

var errStopScan = errors.New("enough rows")

// exec returns a write of one statement.
func (s *Store) exec(ctx context.Context, op, query string, args ...any) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly {
		return 0, s.wrap(op, store.ErrReadOnly)
	}
	var res sql.Result
	err := s.waitForTurn(ctx, func() (err error) {
		res, err = s.prepared().ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		return 0, s.wrap(op, err)
	}
	return res.RowsAffected()
}

// Close closes the file. Later calls fail with store.ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeStatements()
	s.stmts.close()
	s.trajectoryTables.close()
	err := s.conn.Close()
	if e := s.reader.Close(); err == nil {
		err = e
	}
	// The writer goes last: the last connection that may write folds the
	// write-ahead log into the file.
	if e := s.writer.Close(); err == nil {
		err = e
	}
	if e := s.removeScratch(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	return nil
}

// preparedStatements are prepared once, on the writer's connection.
type preparedStatements struct {
	begin, commit, rollback *sql.Stmt

	insertCommit  *sql.Stmt
	updateHead    *sql.Stmt
	updateOwner   *sql.Stmt
	insertContext *sql.Stmt
	insertMessage *sql.Stmt
	insertValue   *sql.Stmt
	insertPart    *sql.Stmt
}

func (st *preparedStatements) prepare(ctx context.Context, c *sql.Conn) error {
	for _, p := range []struct {
		stmt  **sql.Stmt
		query string
	}{
		{&st.begin, "BEGIN IMMEDIATE"},
		{&st.commit, "COMMIT"},
		{&st.rollback, "ROLLBACK"},
		{&st.insertCommit, insertCommit},
		{&st.updateHead, updateHead},
		{&st.updateOwner, "UPDATE run_row SET owner = ?, until = ?, fence = ? WHERE num = ?"},
		{&st.insertContext, "INSERT INTO context (id, run, name, start, source, kind) VALUES (?, ?, ?, ?, ?, ?)"},
		{&st.insertMessage, "INSERT INTO message (id, role, content, value, key, rest, seq, tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
		{&st.insertValue, "INSERT INTO value (id, root, digest, body) VALUES (?, ?, ?, ?)"},
		{&st.insertPart, "INSERT INTO value_part (id, body) VALUES (?, ?)"},
	} {
		var err error
		*p.stmt, err = c.PrepareContext(ctx, p.query) //nolint:sqlclosecheck // kept until close
		if err != nil {
			return fmt.Errorf("prepare %q: %w", p.query, err)
		}
	}
	return nil
}

func (st *preparedStatements) close() {
	for _, s := range []*sql.Stmt{
		st.begin, st.commit, st.rollback, st.insertCommit,
		st.updateHead, st.updateOwner, st.insertContext, st.insertMessage, st.insertValue, st.insertPart,
	} {
		if s != nil {
			_ = s.Close() // the connection is closed next
		}
	}
}
