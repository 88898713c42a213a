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

// Source says where the flows are found that a flow uses, and what those use in
// turn. The zero value finds none.
type Source struct {
	// Files reads flow files; a reference is a path from the folder of the file
	// that it stands in. Nil reads none.
	Files Files
	// Flows are given in Go, by the reference that stands for them; they come
	// before Files.
	Flows map[string]*Flow
	// ByFingerprint returns the normal form of a flow by its fingerprint, for what `uses`
	// pins; nil has none.
	ByFingerprint func(fingerprint string) ([]byte, error)
	// AlreadyValid says that the flow was found valid before it was kept, under the
	// fingerprint that it has: that its settings fit their schemas and that its
	// expressions can be read is not checked again, which is most of the work.
	AlreadyValid bool
}

// Files is where the files of flows are read.
type Files interface {
	// Read returns a file's contents, or an error for which errors.Is says
	// fs.ErrNotExist where there is none. What is beyond MaxJSON may be left off.
	Read(path string) ([]byte, error)
	// List names the files of a folder, for hints; none where it cannot.
	List(folder string) []string
}

// errNotRegular is the reason why a pipe, socket or device is not read.
var errNotRegular = errors.New("it is not a regular file")

// OSFiles is the file system, as seen from the working directory.
type OSFiles struct{}

// Read implements Files.
func (OSFiles) Read(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	} else if !info.Mode().IsRegular() { // opening a pipe waits for its writer
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	f, err := os.Open(path)
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

// MemFiles are files in memory: their contents by path, as filepath.Clean has it.
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

// Parse is the function Parse, with the flows that this one uses.
func (s Source) Parse(name string, data []byte, c Catalogue) (*Flow, error) {
	l := newLoader(newSharedState(s, c), name, data)
	f := l.read()
	if f == nil {
		return nil, l.invalid()
	}
	return f, nil
}

// flowFiles are those of names that flow files may have.
func flowFiles(names []string) []string {
	return slices.DeleteFunc(names, func(n string) bool {
		switch strings.ToLower(filepath.Ext(n)) {
		case ".yaml", ".yml", ".json":
			return strings.HasPrefix(n, ".")
		}
		return true
	})
}
