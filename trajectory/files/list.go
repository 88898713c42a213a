package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// List reads the folders that match the filter. A graph without metadata belongs to a round that was never saved
// completely, and is not listed.
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

// folders lists the folders in dir, or only the named one.
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

// rounds lists the rounds in a session's folder. The files name their user and session, so that one file is opened to
// check all. Rounds of another session, in a copied folder, are not listed.
func rounds(dir string) ([]trajectory.Key, error) {
	names, err := fileNames(dir)
	if err != nil {
		return nil, err
	}
	var keys []trajectory.Key
	var owner *trajectory.Key
	var damaged error
	for _, name := range names {
		round, sub, meta, ok := parseName(name)
		if !ok || !meta {
			continue
		}
		if owner == nil {
			switch k, err := keyIn(filepath.Join(dir, name)); {
			case err != nil:
				damaged = errors.Join(damaged, err)
			case in(k, dir):
				owner = &k
			}
		}
		keys = append(keys, trajectory.Key{Round: round, Sub: sub})
	}
	if owner == nil {
		return nil, damaged
	}
	for i := range keys {
		keys[i].User, keys[i].Session = owner.User, owner.Session
	}
	return keys, nil
}

// fileNames returns the names in a folder, unordered; none if the folder does not exist.
func fileNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// Adjacent reads the names in the session's folder, and no file.
func (s *Storage) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	if err := errors.Join(ctx.Err(), k.Check()); err != nil {
		return 0, 0, fmt.Errorf("find adjacent trajectory files: %w", err)
	}
	names, err := fileNames(filepath.Dir(s.Path(k)))
	if err != nil {
		return 0, 0, fmt.Errorf("find adjacent trajectory files: %w", err)
	}
	ofAgent := metaPath("_Sub" + strconv.Itoa(k.Sub) + graphSuffix)
	for _, name := range names {
		if !strings.HasSuffix(name, ofAgent) {
			continue
		}
		switch round, _, _, ok := parseName(name); {
		case !ok:
		case round < k.Round:
			before = max(before, round)
		case round > k.Round && (after == 0 || round < after):
			after = round
		}
	}
	return before, after, nil
}
