package runner

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrCursor: a text is not a cursor, or is a cursor of another run.
var ErrCursor = errors.New("not a cursor of this run")

// position is a position in the stream of a tree of runs. It is immutable once an item has it.
type position struct {
	hub     string // the hub to which pos belongs, "" for none
	pos     uint64
	sawLive bool          // live output was yielded
	runs    []runPosition // the watched run comes first
}

// runPosition is a run of the tree whose events a reader follows.
type runPosition struct {
	run, pathPrefix, parent string
	last                    int64 // number of the last yielded event; lastUnknown if earlier events are not reported
	seq                     int64 // of a commit up to which everything was yielded
	ended                   bool  // the last event ended the run
}

// lastUnknown is used for a run whose earlier events are not reported, until its number of events is known.
const lastUnknown = -1

// Cursor returns the position after the item, from which a reader can resume, also in another process: Stream continues
// with the next item. It is a text of letters, digits, '-', '_' and '.'. Its format may change. "" for an item that
// was not in a stream.
func (it *Item) Cursor() string {
	if it.from == nil {
		return ""
	}
	return it.from.String()
}

// cursorJSON is the encoded position.
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

// cursorPrefix is the prefix of cursors and names their version.
const cursorPrefix = "c1."

// String returns the position as a cursor.
func (p *position) String() string {
	c := cursorJSON{Hub: p.hub, Pos: p.pos, Heard: p.sawLive, Runs: make([]runPositionJSON, len(p.runs))}
	for i, f := range p.runs {
		c.Runs[i] = runPositionJSON{f.run, f.pathPrefix, f.parent, f.last, f.seq, f.ended}
	}
	b, _ := json.Marshal(c) // it has texts and numbers alone
	return cursorPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// maxCursor limits the length of a cursor.
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
