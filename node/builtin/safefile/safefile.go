// Package safefile reads files that a flow names: regular files of a bounded size, inside a
// folder unless the caller allows others.
//
// It must not know nodes or flows.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Options bound what is read.
type Options struct {
	// Folder is the folder of relative paths, "" the current one.
	Folder string
	// AllowOutside allows files outside the folder.
	AllowOutside bool
	// MaxBytes is the maximum size.
	MaxBytes int64
}

// Read returns the content of a file. Without AllowOutside the file must be inside the folder
// after all symbolic links are resolved. A folder, device or pipe is an error, and so is a
// file that is larger than MaxBytes.
func Read(path string, o Options) (content []byte, err error) {
	f, err := o.open(filepath.FromSlash(path))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	content, err = io.ReadAll(io.LimitReader(f, o.MaxBytes+1))
	if err == nil && int64(len(content)) > o.MaxBytes {
		return nil, fmt.Errorf("it is larger than %d bytes", o.MaxBytes)
	}
	return content, err
}

// open opens a file without waiting for the writer of a pipe.
func (o Options) open(path string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	folder := o.Folder
	if folder == "" {
		folder = "."
	}
	if o.AllowOutside {
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		return os.OpenFile(path, flags, 0)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(path, flags, 0)
	return f, errors.Join(err, root.Close())
}
