// Package files stores trajectories as files: a folder per user, in it a folder per session, and in it two files per
// round and agent. Run{round}_Sub{sub}.json is a graph that networkx reads. Run{round}_Sub{sub}.meta.json has the
// first numbers of its ids, its active branch pointers and the messages. It must not know the content of a graph.
package files

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"github.com/weir-run/weir/trajectory"
)

// Storage is a trajectory.Storage in a folder.
type Storage struct {
	root string
	o    Options
	// locks make updates of a round's two files atomic for the users of this value; a session always has the same
	// lock.
	locks [64]sync.RWMutex
	seed  maphash.Seed
}

// Options configure a Storage.
type Options struct {
	// NoSync does not sync files to the disk. A save then takes a fraction of a millisecond instead of several; after
	// a power failure the newest files may be damaged and must be computed again.
	NoSync bool
}

// New returns the storage in a folder, which is created by the first Save.
func New(root string, o Options) *Storage {
	return &Storage{root: root, o: o, seed: maphash.MakeSeed()}
}

func (s *Storage) lock(k trajectory.Key) *sync.RWMutex {
	return &s.locks[maphash.String(s.seed, k.Session)%uint64(len(s.locks))]
}

// Save replaces each of the two files atomically, the graph first. After a crash between the two, and for another
// process at that moment, a round lacks its newest messages and pointers until it is saved again, and a new round is
// not listed. Only one process at a time may save rounds of a session.
func (s *Storage) Save(ctx context.Context, r trajectory.Record) error {
	if err := errors.Join(ctx.Err(), r.Check()); err != nil {
		return fmt.Errorf("save trajectory files: %w", err)
	}
	if !utf8.ValidString(r.User) || !utf8.ValidString(r.Session) { // JSON would change it
		return fmt.Errorf("save trajectory files: user %q, session %q: %w, and names in UTF-8", r.User, r.Session, trajectory.ErrKey)
	}
	graph, err := r.NodeLink()
	if err != nil {
		return err
	}
	meta, err := r.Meta()
	if err != nil {
		return err
	}
	lock := s.lock(r.Key)
	lock.Lock()
	defer lock.Unlock()
	path := s.Path(r.Key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("save trajectory files: %w", err)
	}
	if err := s.checkOwner(path, r.Key); err != nil {
		return err
	}
	for _, f := range []struct {
		path string
		data []byte
	}{{path, graph}, {metaPath(path), meta}} {
		if err := s.replace(f.path, f.data); err != nil {
			return fmt.Errorf("save trajectory files: %w", err)
		}
	}
	return nil
}

// checkOwner refuses to overwrite the files of another round, whose names are equal on file systems that ignore case.
func (s *Storage) checkOwner(path string, k trajectory.Key) error {
	have, err := keyIn(metaPath(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return nil //nolint:nilerr // an unreadable file is replaced
	case have != k:
		return fmt.Errorf("save trajectory files: %s contains %s, not %s", path, have, k)
	}
	return nil
}

// replace writes a new file, and renames it when it is on disk.
func (s *Storage) replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), writing+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && !s.o.NoSync {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if s.o.NoSync {
		return nil
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load reads and checks the files of a round.
func (s *Storage) Load(ctx context.Context, k trajectory.Key) (trajectory.Record, error) {
	path := s.Path(k)
	if err := errors.Join(ctx.Err(), k.Check()); err != nil {
		return trajectory.Record{}, fmt.Errorf("load trajectory files: %w", err)
	}
	lock := s.lock(k)
	lock.RLock()
	defer lock.RUnlock()
	meta, err := os.ReadFile(metaPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return trajectory.Record{}, fmt.Errorf("%s: %w", k, trajectory.ErrNotFound)
	}
	if err != nil {
		return trajectory.Record{}, fmt.Errorf("load trajectory files: %w", err)
	}
	graph, err := os.ReadFile(path)
	if err != nil {
		return trajectory.Record{}, fmt.Errorf("load trajectory files: %w", err)
	}
	r, err := trajectory.ReadRecord(graph, meta)
	if err != nil {
		return trajectory.Record{}, fmt.Errorf("%s: %w", path, err)
	}
	if r.Key != k {
		return trajectory.Record{}, fmt.Errorf("%s contains %s, not %s", path, r.Key, k)
	}
	return r, nil
}
