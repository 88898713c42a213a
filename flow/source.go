package flow

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Source says where to find the flows that a flow uses, directly and indirectly. The zero
// value finds none.
type Source struct {
	// Files reads flow files; a reference is a path relative to the folder of the referring
	// file. Nil reads none.
	Files Files
	// Flows are flows given in Go, by reference. They take precedence over Files.
	Flows map[string]*Flow
	// ByFingerprint returns the normal form of a flow by its fingerprint, for the pins in
	// `uses`; nil has none.
	ByFingerprint func(fingerprint string) ([]byte, error)
	// AlreadyValid says that the flow was validated before it was stored under its
	// fingerprint. Parse then skips the checks of settings against their schemas and of the
	// syntax of expressions, which are most of the work.
	AlreadyValid bool
}

// Files provides the files of flows.
type Files interface {
	// Read returns a file's content. If the file does not exist, errors.Is reports
	// fs.ErrNotExist for the error. Content beyond MaxJSON may be omitted.
	Read(path string) ([]byte, error)
	// List returns the names of the files in a folder, for hints; none if it cannot.
	List(folder string) []string
}

// errNotRegular is returned for pipes, sockets and devices.
var errNotRegular = errors.New("it is not a regular file")

// errOutside is returned for files outside of the folders that may be read.
var errOutside = errors.New("it is outside of the folders that flows may be read from")

// OSFiles is the file system, relative to the working directory.
type OSFiles struct {
	// Folders are those whose files may be read, and the files of the folders below them;
	// symbolic links that lead out of a folder are refused. Nil allows every file.
	Folders []string
}

// Read implements Files.
func (o OSFiles) Read(path string) ([]byte, error) {
	if o.Folders == nil {
		return readRegular(path, os.Stat, func() (*os.File, error) { return os.Open(path) })
	}
	for _, folder := range o.Folders {
		within, ok := pathBelow(folder, path)
		if !ok {
			continue
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // only read
		data, err := readRegular(within, root.Stat, func() (*os.File, error) { return root.Open(within) })
		if err != nil && leavesFolder(folder, path) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: errOutside}
		}
		return data, err
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: errOutside}
}

// pathBelow returns a path relative to the folder that it is in or below; false if it is
// elsewhere.
func pathBelow(folder, path string) (string, bool) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", false
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", false
	}
	within, err := filepath.Rel(folder, path)
	return within, err == nil && filepath.IsLocal(within)
}

// leavesFolder reports whether a path below a folder is elsewhere, because a symbolic link leads out of the folder.
func leavesFolder(folder, path string) bool {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return false
	}
	_, below := pathBelow(folder, path)
	return !below
}

// readRegular reads a regular file. It opens nothing else: opening a pipe waits for its
// writer.
func readRegular(path string, stat func(string) (fs.FileInfo, error), open func() (*os.File, error)) ([]byte, error) {
	if info, err := stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	} else if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, MaxJSON+1))
}

// List implements Files.
func (OSFiles) List(folder string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

// MemFiles are files in memory: their contents by path, in the form of filepath.Clean.
type MemFiles map[string]string

// Read implements Files.
func (t MemFiles) Read(path string) ([]byte, error) {
	s, ok := t[filepath.ToSlash(filepath.Clean(path))]
	if !ok {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}
	return []byte(s), nil
}

// List implements Files.
func (t MemFiles) List(folder string) []string {
	var out []string
	for name := range t {
		if filepath.Dir(filepath.FromSlash(name)) == filepath.Clean(folder) {
			out = append(out, filepath.Base(name))
		}
	}
	slices.Sort(out)
	return out
}

// Parse returns the function Parse, with access to the flows that this one uses.
func (s Source) Parse(name string, data []byte, c Catalogue) (*Flow, error) {
	l := newLoader(newSharedState(s, c), name, data)
	f := l.read()
	if f == nil {
		return nil, l.invalid()
	}
	return f, nil
}

// flowFiles returns the names that flow files may have.
func flowFiles(names []string) []string {
	return slices.DeleteFunc(names, func(n string) bool {
		switch strings.ToLower(filepath.Ext(n)) {
		case ".yaml", ".yml", ".json":
			return strings.HasPrefix(n, ".")
		}
		return true
	})
}
