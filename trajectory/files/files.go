// Package files stores trajectories as files: a folder per user, in it a folder per
// session, and in it two files per round and agent. Run{round}_Sub{sub}.json is a
// graph that networkx reads. Run{round}_Sub{sub}.meta.json has the first numbers of
// its ids, its active branch pointers and the messages.
//
// It must not know what is in a graph.
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
	// locks make the two files of a round one to all who use this value; a
	// session always has the same.
	locks [64]sync.RWMutex
	seed  maphash.Seed
}

// Options are how files are written.
type Options struct {
	// NoSync leaves it to the operating system when a file reaches the disk. A
	// save then takes a fraction of a millisecond and not several; after a power
	// cut the newest files may be damaged, and must be made again.
	NoSync bool
}

// New returns the storage in a folder, which is made with the first round that
// is saved.
func New(root string, o Options) *Storage {
	return &Storage{root: root, o: o, seed: maphash.MakeSeed()}
}

func (s *Storage) lock(k trajectory.Key) *sync.RWMutex {
	return &s.locks[maphash.String(s.seed, k.Session)%uint64(len(s.locks))]
}

// Save writes both files, each in place of the old one in one step and the graph
// first: after a crash between the two, and to another process in that moment, a
// round lacks its newest messages and pointers until it is saved again, and a
// new round is not there. Of a session only one process at a time may save.
func (s *Storage) Save(ctx context.Context, r trajectory.Record) error {
	if err := errors.Join(ctx.Err(), r.Check()); err != nil {
		return fmt.Errorf("save trajectory files: %w", err)
	}
	if !utf8.ValidString(r.User) || !utf8.ValidString(r.Session) { // JSON would write another
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

// checkOwner refuses to write over another round's files, which have the same name
// where a file system does not tell capital letters apart.
func (s *Storage) checkOwner(path string, k trajectory.Key) error {
	have, err := keyIn(metaPath(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return nil //nolint:nilerr // what cannot be read is replaced
	case have != k:
		return fmt.Errorf("save trajectory files: %s holds %s, not %s", path, have, k)
	}
	return nil
}

// replace writes a file beside the old one, and gives it the old one's name
// once it is on disk.
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
		return trajectory.Record{}, fmt.Errorf("%s holds %s, not %s", path, r.Key, k)
	}
	return r, nil
}
