package runner

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrCursor: a text is no cursor, or one of another run.
var ErrCursor = errors.New("not a cursor of this run")

// position is where a reader is in the stream of a tree of runs. It is never changed
// once an item has it.
type position struct {
	hub     string // the hub that pos is of, "" for none
	pos     uint64
	sawLive bool          // live output was yielded
	runs    []runPosition // the watched run first
}

// runPosition is a run of the tree whose events a reader follows.
type runPosition struct {
	run, pathPrefix, parent string
	last                    int64 // number of the last event yielded; unset where what was is no news
	seq                     int64 // of a commit up to which all was yielded
	ended                   bool  // the last event ended the run
}

// lastUnknown is the number of the last event of a run of which what was is no news, until
// it is known how far it has come.
const lastUnknown = -1

// Cursor is the position behind the item, from which a reader can resume, also in
// another process: Stream continues with what follows the item. It is a text of letters,
// digits, '-', '_' and '.'. Its contents may change. "" for an item that was in no stream.
func (it *Item) Cursor() string {
	if it.from == nil {
		return ""
	}
	return it.from.String()
}

// cursorJSON is a position as text.
type cursorJSON struct {
	Hub   string            `json:"h,omitempty"`
	Pos   uint64            `json:"p,omitempty"`
	Heard bool              `json:"l,omitempty"`
	Runs  []runPositionJSON `json:"r"`
}

type runPositionJSON struct {
	Run    string `json:"i"`
	Above  string `json:"a,omitempty"`
	Parent string `json:"p,omitempty"`
	Last   int64  `json:"n"`
	Seq    int64  `json:"s,omitempty"`
	Ended  bool   `json:"e,omitempty"`
}

// cursorPrefix begins a cursor; it names the version.
const cursorPrefix = "c1."

// String is the position as a cursor.
func (p *position) String() string {
	c := cursorJSON{Hub: p.hub, Pos: p.pos, Heard: p.sawLive, Runs: make([]runPositionJSON, len(p.runs))}
	for i, f := range p.runs {
		c.Runs[i] = runPositionJSON{f.run, f.pathPrefix, f.parent, f.last, f.seq, f.ended}
	}
	b, _ := json.Marshal(c) // it has texts and numbers alone
	return cursorPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// maxCursor bounds the text of a cursor that is read.
const maxCursor = 4 << 20

// parseCursor reads a cursor of the stream of a run.
func parseCursor(run, text string) (*position, error) {
	body, found := strings.CutPrefix(text, cursorPrefix)
	if !found || len(body) > maxCursor {
		return nil, fmt.Errorf("%w: %s", ErrCursor, run)
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	var c cursorJSON
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCursor, run, err)
	}
	bad := func(r runPositionJSON) bool { return r.Last < lastUnknown || r.Seq < 0 }
	if len(c.Runs) == 0 || c.Runs[0].Run != run || slices.ContainsFunc(c.Runs, bad) {
		return nil, fmt.Errorf("%w: %s", ErrCursor, run)
	}
	p := &position{hub: c.Hub, pos: c.Pos, sawLive: c.Heard, runs: make([]runPosition, len(c.Runs))}
	for i, r := range c.Runs {
		p.runs[i] = runPosition{r.Run, r.Above, r.Parent, r.Last, r.Seq, r.Ended}
	}
	return p, nil
}
