package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/tool"
)

// Pin is the accepted definition of a tool.
type Pin struct {
	Hash        string         `json:"hash"` // tool.Tool's Hash
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
	ReadOnly    bool           `json:"readOnly,omitempty"`
}

// Pins stores the accepted definitions of servers, by the server's names of the tools.
type Pins interface {
	// Pins returns those of one server, none if nothing was accepted.
	Pins(server string) (map[string]Pin, error)
	// SetPins replaces those of one server.
	SetPins(server string, pins map[string]Pin) error
}

// LockFile stores pins in a JSON file next to the configuration, for version control. It is
// safe for concurrent use in one process; two processes that accept at the same time may
// lose one of their changes.
type LockFile struct {
	path string
	mu   sync.Mutex
}

// NewLockFile returns a LockFile at path; the file is created on the first Accept.
func NewLockFile(path string) *LockFile { return &LockFile{path: path} }

// Pins implements Pins.
func (l *LockFile) Pins(server string) (map[string]Pin, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.read()
	return all[server], err
}

// SetPins implements Pins.
func (l *LockFile) SetPins(server string, pins map[string]Pin) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.read()
	if err != nil {
		return err
	}
	all[server] = pins
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write pins: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(l.path), ".pins-*")
	if err != nil {
		return fmt.Errorf("write pins: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), l.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write pins: %w", err), os.Remove(f.Name()))
	}
	return nil
}

func (l *LockFile) read() (map[string]map[string]Pin, error) {
	all := map[string]map[string]Pin{}
	b, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pins: %w", err)
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("read pins: %s: %w", l.path, err)
	}
	return all, nil
}

// Reason says why a tool is not offered.
type Reason string

// The reasons.
const (
	ReasonNew     Reason = "new"     // it was never accepted
	ReasonChanged Reason = "changed" // its definition differs from the accepted one
	ReasonMissing Reason = "missing" // the server does not have it
	ReasonInvalid Reason = "invalid" // its definition is invalid
)

// Refusal is one tool that is not offered.
type Refusal struct {
	Server, Tool string
	Reason       Reason
	// Changes describes the differences, or the reasons, in one sentence each.
	Changes []string
	// Offered is the server's present definition, for Accept.
	Offered Pin
}

// String returns the refusal in one line.
func (r Refusal) String() string {
	name := FlowName(r.Server, r.Tool)
	what := strings.Join(r.Changes, "; ")
	switch r.Reason {
	case ReasonNew:
		return name + " is new and was not accepted yet"
	case ReasonChanged:
		return strings.TrimSuffix(name+" changed since it was accepted: "+what, ": ")
	case ReasonMissing:
		return name + " is listed in the configuration, and the server does not have it"
	case ReasonInvalid:
		return strings.TrimSuffix(name+" cannot be used: "+what, ": ")
	}
	return name
}

// RefusedError names all tools that are not offered.
type RefusedError struct{ Refusals []Refusal }

// Error implements error. It names the tools, but quotes none of the server's text, because
// the error may reach a model.
func (e *RefusedError) Error() string {
	lines := make([]string, len(e.Refusals))
	for i, r := range e.Refusals {
		lines[i] = Refusal{Server: r.Server, Tool: r.Tool, Reason: r.Reason}.String()
		if r.Reason == ReasonChanged || r.Reason == ReasonNew {
			lines[i] += fmt.Sprintf("; a person can accept it with `weir tools accept %s/%s`", r.Server, r.Tool)
		}
	}
	return "mcp tools refused: " + strings.Join(lines, "; ")
}

// pinOf returns the pin of a tool's definition.
func pinOf(t *tool.Tool) Pin {
	return Pin{Hash: t.Hash(), Description: t.Description, Parameters: t.Parameters, ReadOnly: t.ReadOnly}
}

// maxShown is the maximum length of a quoted text in a change, in bytes.
const maxShown = 160

// definitionChanges describes the differences between two definitions.
func definitionChanges(was, now Pin) []string {
	var out []string
	if was.Description != now.Description {
		out = append(out, fmt.Sprintf("its description was %q and is now %q",
			tool.Cut(was.Description, maxShown), tool.Cut(now.Description, maxShown)))
	}
	if was.ReadOnly != now.ReadOnly {
		out = append(out, fmt.Sprintf("read-only was %v and is now %v", was.ReadOnly, now.ReadOnly))
	}
	before, _ := was.Parameters["properties"].(map[string]any)
	after, _ := now.Parameters["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if old, ok := before[name]; !ok {
			out = append(out, fmt.Sprintf("it has a new parameter %q", tool.Cut(tool.Clean(name), maxShown)))
		} else if !reflect.DeepEqual(old, after[name]) {
			out = append(out, fmt.Sprintf("its parameter %q is another", tool.Cut(tool.Clean(name), maxShown)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			out = append(out, fmt.Sprintf("its parameter %q is gone", tool.Cut(tool.Clean(name), maxShown)))
		}
	}
	if len(out) == 0 {
		out = append(out, "other parts of its parameters, or what it is called for models")
	}
	return out
}
