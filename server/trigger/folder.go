package trigger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// listed is a file as the folder lists it.
type listed struct {
	name     string
	size     int64
	modified time.Time
	info     fs.FileInfo
	refused  string // why it starts nothing whatever its content
}

// listFolder lists the files of a folder whose names match a pattern, those first that were changed first. It has neither
// folders nor files whose names begin with a dot.
func listFolder(root *os.Root, pattern string) ([]listed, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	var out []listed
	for n := 0; ; {
		entries, err := dir.ReadDir(500)
		if n += len(entries); n > MaxFiles {
			return nil, fmt.Errorf("the folder has more than %d files: nothing starts until it has fewer", MaxFiles)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") || e.IsDir() {
				continue
			}
			f, err := listEntry(e, pattern)
			if err != nil {
				return nil, err
			}
			if f != nil {
				out = append(out, *f)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b listed) int { return cmp.Or(a.modified.Compare(b.modified), cmp.Compare(a.name, b.name)) })
	return out, nil
}

// listEntry returns an entry of a folder; nil if it does not match or has gone meanwhile.
func listEntry(e fs.DirEntry, pattern string) (*listed, error) {
	name := e.Name()
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil, fmt.Errorf("the file %q has a name with characters that cannot be shown: nothing starts until it has another name", name)
	}
	if match, err := path.Match(cmp.Or(pattern, "*"), name); !match || err != nil {
		return nil, err
	}
	i, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &listed{name: name, size: i.Size(), modified: i.ModTime(), info: i}
	switch mode := i.Mode(); {
	case mode&fs.ModeSymlink != 0:
		f.refused = "a symbolic link is not followed"
	case !mode.IsRegular():
		f.refused = "it is not a regular file"
	}
	return f, nil
}

// digestOf identifies a listing.
func digestOf(list []listed) string {
	h := sha256.New()
	for i := range list {
		f := &list[i]
		fmt.Fprintf(h, "%q %d %d %s\n", f.name, f.size, f.modified.UnixNano(), f.refused)
	}
	return hex.EncodeToString(h.Sum(nil))
}
