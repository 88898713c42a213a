package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// Delete removes the files of the rounds that match the filter, leftovers of interrupted saves, and empty folders. It
// follows no links and does not touch other files: other names, irregular files, and files whose content names
// another round than their name and folder. Only one process at a time may save or delete rounds of a session. The
// files' blocks on the disk are not overwritten.
func (s *Storage) Delete(ctx context.Context, f trajectory.Filter) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("delete trajectory files: %w", err)
	}
	for i := range s.locks {
		s.locks[i].Lock()
		defer s.locks[i].Unlock()
	}
	root, err := os.OpenRoot(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("delete trajectory files: %w", err)
	}
	d := &deletion{ctx: ctx, root: root, filter: f, sync: !s.o.NoSync}
	err = errors.Join(d.eachFolder(".", f.User, d.deleteUser), root.Close())
	if err != nil {
		return d.gone, fmt.Errorf("delete trajectory files in %s: %w", s.root, err)
	}
	return d.gone, nil
}

// deletion is one call of Delete.
type deletion struct {
	ctx    context.Context
	root   *os.Root
	filter trajectory.Filter
	sync   bool
	gone   int // deleted rounds
}

// eachFolder calls do with each folder in dir, or only with the named one, and removes the folder if it is then
// empty. A failure in one does not stop the others.
func (d *deletion) eachFolder(dir string, name *string, do func(dir string) error) error {
	entries, err := d.read(dir)
	if err != nil {
		return err
	}
	var errs []error
	removed := false
	for _, e := range entries {
		sub := path.Join(dir, e.Name())
		switch {
		case name != nil && e.Name() != folder(*name):
			continue
		case !e.IsDir():
			if name != nil {
				errs = append(errs, fmt.Errorf("%s is not a folder; it is not followed or deleted", sub))
			}
			continue
		}
		err := do(sub)
		if err == nil {
			var empty bool
			empty, err = d.prune(sub)
			removed = removed || empty
		}
		if errs = append(errs, err); d.ctx.Err() != nil {
			break
		}
	}
	if removed {
		errs = append(errs, d.syncFolder(dir))
	}
	return errors.Join(errs...)
}

func (d *deletion) deleteUser(dir string) error {
	return d.eachFolder(dir, d.filter.Session, d.deleteSession)
}

// deleteSession removes files from a session's folder.
func (d *deletion) deleteSession(dir string) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	entries, err := d.read(dir)
	if err != nil {
		return err
	}
	// Metadata is deleted first: after a crash, what remains is not a round, and is removed by the next call.
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
		one, two := strings.HasSuffix(a.Name(), metaSuffix), strings.HasSuffix(b.Name(), metaSuffix)
		switch {
		case one == two:
			return 0
		case one:
			return -1
		}
		return 1
	})
	var errs []error
	removed := false
	for _, e := range entries {
		listed, ours := d.isOurs(dir, e)
		if !ours {
			continue
		}
		if err := d.root.Remove(path.Join(dir, e.Name())); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = true
		if listed {
			d.gone++
		}
	}
	if removed {
		errs = append(errs, d.syncFolder(dir))
	}
	return errors.Join(errs...)
}

// isOurs reports whether a file is to be deleted, and whether it represents a round.
func (d *deletion) isOurs(dir string, e fs.DirEntry) (listed, ours bool) {
	if !e.Type().IsRegular() {
		return false, false
	}
	part := trajectory.Filter{Round: d.filter.Round, Sub: d.filter.Sub} // the folders match the other fields
	if strings.HasPrefix(e.Name(), writing) {
		k, err := d.key(path.Join(dir, e.Name()))
		if err != nil { // an interrupted save, without its key
			return false, part == trajectory.Filter{}
		}
		return false, in(k, dir) && part.Match(k)
	}
	round, sub, meta, ok := parseName(e.Name())
	if !ok || !part.Match(trajectory.Key{Round: round, Sub: sub}) {
		return false, false
	}
	k, err := d.key(path.Join(dir, e.Name()))
	if err != nil { // damaged, but with the name of a round
		return meta, true
	}
	return meta, in(k, dir) && k.Round == round && k.Sub == sub
}

func (d *deletion) key(name string) (trajectory.Key, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return trajectory.Key{}, err
	}
	k, err := readKey(f)
	return k, errors.Join(err, f.Close())
}

// prune removes a folder if it is empty.
func (d *deletion) prune(dir string) (removed bool, err error) {
	left, err := d.read(dir)
	if err != nil || len(left) > 0 {
		return false, err
	}
	return true, d.root.Remove(dir)
}

func (d *deletion) read(dir string) ([]fs.DirEntry, error) {
	f, err := d.root.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}

// syncFolder makes the removal of names from a folder durable.
func (d *deletion) syncFolder(dir string) error {
	if !d.sync {
		return nil
	}
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
