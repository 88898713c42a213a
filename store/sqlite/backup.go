package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Backup writes a complete copy of the database to a new file at path, while processes continue
// writing. The file can be read as any database; Open refuses it with store.ErrBackup, so that
// nothing runs in it before Restore. The error is fs.ErrExist if there is a file.
func (s *Store) Backup(ctx context.Context, path string) error {
	return wrap("back up to "+path, makeFile(path, func(made string) error {
		mode := ""
		if s.readOnly {
			mode = readOnlyMode + s.mode
		}
		if err := copyDatabase(ctx, s.path, mode, made); err != nil {
			return err
		}
		return setApplicationID(ctx, made, backupID)
	}))
}

// copyDatabase writes the content of a database, without live text, to an empty file. mode is added to the data
// source name of the source.
func copyDatabase(ctx context.Context, from, mode, to string) error {
	db, err := sql.Open("sqlite", dsn(from, []string{"busy_timeout(10000)"})+mode)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	return removeLiveText(ctx, to)
}

// removeLiveText deletes the live text from a file that no process has open, and overwrites it.
func removeLiveText(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dsn(path, []string{"secure_delete(1)", "journal_mode(DELETE)"}))
	if err != nil {
		return err
	}
	var has bool
	err = db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'live_text')").Scan(&has)
	if err == nil && has { // an earlier version has none
		_, err = db.ExecContext(ctx, "DELETE FROM live_text")
	}
	return errors.Join(err, db.Close())
}

// makeFile lets fill write a temporary file next to path, and renames it once it is complete
// and durable.
func makeFile(path string, fill func(made string) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	made := f.Name()
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(made + suffix) // what is left of it
		}
	}()
	if err := errors.Join(f.Close(), fill(made), syncFile(made)); err != nil {
		return err
	}
	switch err := os.Link(made, path); {
	case errors.Is(err, fs.ErrExist):
		return fs.ErrExist
	case err != nil: // not every file system has links
		if err := os.Rename(made, path); err != nil {
			return err
		}
	}
	return syncFolder(filepath.Dir(path))
}

// setApplicationID writes the application id to the header of a file that no process has open.
func setApplicationID(ctx context.Context, path string, id int) error {
	db, err := sql.Open("sqlite", dsn(path, []string{"journal_mode(DELETE)"}))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA application_id = "+strconv.Itoa(id))
	return errors.Join(err, db.Close())
}

const readOnlyMode = "&mode=ro"

// Restored is what Restore found in a backup.
type Restored struct {
	// Runs and Sessions are their numbers.
	Runs     int `json:"runs"`
	Sessions int `json:"sessions"`
	// Unfinished is the number of runs that had not ended, those that wait for a person
	// included. What they did after the backup is not in it and may be done again.
	Unfinished int `json:"unfinished"`
	// Newest is the time of the last commit of a run; zero if there is none.
	Newest time.Time `json:"newest"`
}

// Restore creates a database from a backup, at a path without a file. It raises all fences and
// removes all owners, so that no earlier process can write to it. The error is fs.ErrExist if
// there is a file at path, and store.ErrCorrupt if the backup is damaged, store.ErrNotWeir if it is another file.
func Restore(ctx context.Context, backup, path string, opts Options) (Restored, error) {
	var out Restored
	err := makeFile(path, func(made string) error {
		backup, err := filepath.Abs(backup)
		if err != nil {
			return err
		}
		if err := checkFile(ctx, backup); err != nil {
			return err
		}
		if err := copyDatabase(ctx, backup, readOnlyMode, made); err != nil {
			return err
		}
		if err := setApplicationID(ctx, made, applicationID); err != nil {
			return err
		}
		opts.noBackup = true
		s, err := openFile(ctx, made, opts, migrations())
		if err != nil {
			return err
		}
		out, err = s.raiseFences(ctx)
		return errors.Join(err, s.Close())
	})
	return out, wrap("restore "+backup, err)
}

// checkFile reads every page of a file of Weir's.
func checkFile(ctx context.Context, path string) error {
	target, err := newestVersion(migrations())
	if err != nil {
		return err
	}
	switch version, err := inspect(ctx, path, target, Options{backup: true}); {
	case err != nil:
		return err
	case version == 0: // it is empty
		return errNotDB
	}
	db, err := sql.Open("sqlite", dsn(path, []string{"busy_timeout(10000)"})+readOnlyMode)
	if err != nil {
		return err
	}
	var verdict string
	err = db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict)
	if err = errors.Join(err, db.Close()); err == nil && verdict != "ok" {
		err = fmt.Errorf("%w: %s", store.ErrCorrupt, verdict)
	}
	return err
}

// fencesRaised is added to each fence: more than the number of owners that a run had after the
// backup.
const fencesRaised = 1 << 20

func (s *Store) raiseFences(ctx context.Context) (Restored, error) {
	var out Restored
	var newest sql.NullInt64
	err := s.write(ctx, "raise fences", func(ctx context.Context) error {
		if _, err := s.conn.ExecContext(ctx, "UPDATE run_row SET fence = fence + ?, owner = NULL, until = 0", fencesRaised); err != nil {
			return err
		}
		if _, err := s.conn.ExecContext(ctx, "UPDATE session SET fence = fence + ?", fencesRaised); err != nil {
			return err
		}
		return s.conn.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM run_row), (SELECT count(*) FROM session),
			(SELECT count(*) FROM run WHERE status NOT IN (?, ?, ?)),
			(SELECT max(r.created + c.at) FROM run_commit c JOIN run_row r ON r.num = c.id >> 32)`,
			engine.Completed.String(), engine.Failed.String(), engine.Cancelled.String()).Scan(&out.Runs, &out.Sessions, &out.Unfinished, &newest)
	})
	if newest.Valid {
		out.Newest = time.UnixMilli(newest.Int64).UTC()
	}
	return out, err
}
