// Package files keeps trajectories as files: for each round of each agent
// Run{round}_Sub{sub}.json, a graph that networkx reads, and beside it
// Run{round}_Sub{sub}.meta.json with where it begins, its active branch pointers
// and the messages. A folder for each user has one for each session.
//
// It must not know what is in a graph.
package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

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

// Path returns the file with the graph of a round; the other is beside it.
func (s *Storage) Path(k trajectory.Key) string {
	return filepath.Join(s.root, folder(k.User), folder(k.Session), fmt.Sprintf("Run%d_Sub%d.json", k.Round, k.Sub))
}

func metaPath(graph string) string { return strings.TrimSuffix(graph, ".json") + ".meta.json" }

// Save writes both files, each in place of the old one in one step and the graph
// first: after a crash between the two, and to another process in that moment, a
// round lacks its newest messages and pointers until it is saved again, and a
// new round is not there. Of a session only one process at a time may save.
func (s *Storage) Save(ctx context.Context, r trajectory.Record) error {
	if err := errors.Join(ctx.Err(), r.Check()); err != nil {
		return fmt.Errorf("save trajectory files: %w", err)
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
	if err := s.guard(path, r.Key); err != nil {
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

// guard refuses to write over another round's files, which have the same name
// where a file system does not tell capital letters apart.
func (s *Storage) guard(path string, k trajectory.Key) error {
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
	f, err := os.CreateTemp(filepath.Dir(path), ".writing-*")
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

// List reads the folders that the filter lets through. A graph without its
// metadata is of a round that was never saved whole, and is not listed.
func (s *Storage) List(ctx context.Context, f trajectory.Filter) ([]trajectory.Key, error) {
	users, err := folders(s.root, f.User)
	if err != nil {
		return nil, fmt.Errorf("list trajectory files: %w", err)
	}
	var keys []trajectory.Key
	for _, user := range users {
		sessions, err := folders(user, f.Session)
		if err != nil {
			return nil, fmt.Errorf("list trajectory files: %w", err)
		}
		for _, session := range sessions {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("list trajectory files: %w", err)
			}
			found, err := rounds(session)
			if err != nil {
				return nil, fmt.Errorf("list trajectory files: %w", err)
			}
			for _, k := range found {
				if f.Match(k) {
					keys = append(keys, k)
				}
			}
		}
	}
	return trajectory.SortKeys(keys), nil
}

// folders lists the folders in dir, or the one of a name that is given.
func folders(dir string, name *string) ([]string, error) {
	if name != nil {
		return []string{filepath.Join(dir, folder(*name))}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}

// rounds lists the rounds in a session's folder. Whose they are stands in the
// files; the names say which, so that one file is opened for all.
func rounds(dir string) ([]trajectory.Key, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keys []trajectory.Key
	var whose *trajectory.Key
	name := regexp.MustCompile(`^Run(\d+)_Sub(\d+)\.meta\.json$`)
	for _, e := range entries {
		m := name.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if whose == nil {
			k, err := keyIn(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			whose = &k
		}
		k := *whose
		var bad error
		k.Round, err = strconv.Atoi(m[1])
		k.Sub, bad = strconv.Atoi(m[2])
		if err == nil && bad == nil {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// keyIn reads whose round a metadata file is of, and no more of it than that.
func keyIn(path string) (trajectory.Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return trajectory.Key{}, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	k, err := readKey(json.NewDecoder(f))
	if err != nil {
		return trajectory.Key{}, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

func readKey(d *json.Decoder) (k trajectory.Key, err error) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return k, errors.Join(errors.New("is not a JSON object"), err)
	}
	fields := map[string]any{"user": &k.User, "session": &k.Session, "round": &k.Round, "sub": &k.Sub}
	for len(fields) > 0 && d.More() {
		t, err := d.Token()
		if err != nil {
			return k, err
		}
		name, _ := t.(string)
		into := fields[name]
		if into == nil {
			into = &json.RawMessage{}
		}
		if err := d.Decode(into); err != nil {
			return k, fmt.Errorf("%s: %w", name, err)
		}
		delete(fields, name)
	}
	return k, k.Check()
}

// longest is what a file system takes for a name, bytes.
const longest = 255

// folder is the name of the folder for a user or session: the name itself, with
// %XX for bytes that not every file system takes, "_" for none, and a digest in
// place of the end of what is too long.
func folder(name string) string {
	if name == "" {
		return "_"
	}
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if letter || c == '-' || c == '@' || i > 0 && (c == '_' || c == '.' && i < len(name)-1) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() <= longest {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return b.String()[:longest-40] + "~" + hex.EncodeToString(sum[:])[:39]
}
