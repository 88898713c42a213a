package sqlite

import (
	"fmt"
	"path/filepath"
)

// Sync says when commits reach the disk.
type Sync uint8

const (
	// SyncFull writes the log to the disk before a commit is acknowledged: it survives a
	// power cut.
	SyncFull Sync = iota
	// SyncNormal writes the log to the disk when it is merged into the file, after about 4 MB
	// of log, at the end of the process, and after a deletion. The end of a process, also by
	// kill -9, loses nothing. A power cut or a crash of the operating system loses the
	// commits since then, in all runs: the file stays consistent, and runs continue from
	// the commits that are left. Effects of lost commits run again, with the same keys and
	// without a question, because nothing says that they had started.
	SyncNormal
)

// ParseSync returns the mode of a name: "full" or "normal"; "" is full.
func ParseSync(name string) (Sync, error) {
	switch name {
	case "", SyncFull.String():
		return SyncFull, nil
	case SyncNormal.String():
		return SyncNormal, nil
	}
	return 0, fmt.Errorf("sync %q: want full or normal", name)
}

// String returns the name that ParseSync takes.
func (s Sync) String() string {
	if s == SyncNormal {
		return "normal"
	}
	return "full"
}

// pragma is the setting of SQLite.
func (s Sync) pragma() string {
	if s == SyncNormal {
		return "synchronous(NORMAL)"
	}
	return "synchronous(FULL)"
}

// syncLog makes what was committed durable. With SyncFull each commit is.
func (s *Store) syncLog() error {
	if s.sync == SyncFull {
		return nil
	}
	if err := syncFile(s.path + "-wal"); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(s.path)) // the log may be new
}
