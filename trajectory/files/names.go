package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// Path returns the file with the graph of a round; the metadata file is next to it.
func (s *Storage) Path(k trajectory.Key) string {
	return filepath.Join(s.root, folder(k.User), folder(k.Session), graphName(k.Round, k.Sub))
}

const (
	graphSuffix = ".json"
	metaSuffix  = ".meta.json"
	writing     = ".writing-" // prefix of a file that is being written
)

func graphName(round, sub int) string {
	return "Run" + strconv.Itoa(round) + "_Sub" + strconv.Itoa(sub) + graphSuffix
}

func metaPath(graph string) string { return strings.TrimSuffix(graph, graphSuffix) + metaSuffix }

// parseName parses the name of a graph's file, or of its metadata file.
func parseName(name string) (round, sub int, meta, ok bool) {
	graph, meta := strings.CutSuffix(name, metaSuffix)
	if meta {
		graph += graphSuffix
	} else {
		graph = name
	}
	numbers, isRun := strings.CutPrefix(graph, "Run")
	numbers, ends := strings.CutSuffix(numbers, graphSuffix)
	one, two, both := strings.Cut(numbers, "_Sub")
	round, first := number(one)
	sub, second := number(two)
	if !isRun || !ends || !both || !first || !second || round < 1 {
		return 0, 0, false, false
	}
	return round, sub, meta, true
}

// number parses a number of at least 0 in the format of strconv.Itoa.
func number(digits string) (n int, ok bool) {
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && digits[0] != '+' && (digits[0] != '0' || len(digits) == 1) && digits[0] != '-'
}

// in reports whether the key belongs into a session's folder.
func in(k trajectory.Key, session string) bool {
	return folder(k.Session) == filepath.Base(session) && folder(k.User) == filepath.Base(filepath.Dir(session))
}

// keyIn reads the key from a metadata file, and nothing after it.
func keyIn(path string) (trajectory.Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return trajectory.Key{}, err
	}
	defer f.Close() //nolint:errcheck // the file was only read
	k, err := readKey(f)
	if err != nil {
		return trajectory.Key{}, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// readKey reads the key from metadata, or from a graph, which has it one level deeper.
func readKey(r io.Reader) (k trajectory.Key, err error) {
	d := json.NewDecoder(r)
	fields := map[string]any{"user": &k.User, "session": &k.Session, "round": &k.Round, "sub": &k.Sub}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return k, errors.Join(errors.New("is not a JSON object"), err)
	}
	for len(fields) > 0 && d.More() {
		t, err := d.Token()
		if err != nil {
			return k, err
		}
		name, _ := t.(string)
		into := fields[name]
		var inside json.RawMessage
		if into == nil {
			into = &inside
		}
		if err := d.Decode(into); err != nil {
			return k, fmt.Errorf("%s: %w", name, err)
		}
		if name == "graph" {
			return readKey(bytes.NewReader(inside))
		}
		delete(fields, name)
	}
	if len(fields) > 0 {
		return k, errors.New("does not name its user and session")
	}
	return k, k.Check()
}

// longest is the maximum length of a name in file systems, in bytes.
const longest = 255

// folder returns the folder name for a user or session: the name itself, with %XX for bytes that some file systems do
// not accept, "_" for the empty name, and a digest in place of the end of a long name.
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
