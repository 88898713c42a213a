package convo

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrTooLarge means that the messages that a view may not omit do not fit into its room.
var ErrTooLarge = errors.New("the messages do not fit")

// Strategy says what a view does when a history outgrows its room.
type Strategy string

// The strategies. Window is the default.
const (
	// Window omits the oldest messages.
	Window Strategy = "window"
	// Summarise replaces omitted messages with a summary.
	Summarise Strategy = "summary"
	// All omits nothing; a history that does not fit is ErrTooLarge.
	All Strategy = "all"
)

// Counter counts tokens. Its methods must be deterministic.
type Counter interface {
	// Message returns the tokens of a message in a request.
	Message(m Message) int
	// Head and Tail return the longest beginning and end of a text with at most n tokens.
	Head(text string, n int) string
	Tail(text string, n int) string
}

// ViewSpec says how a view is made. Equal specs give equal views of equal contexts.
type ViewSpec struct {
	// Room is the number of tokens that the messages may take, at least 1: the window minus
	// system instructions, tools and reserve.
	Room int
	// Count counts tokens; it must be comparable. Its counts are multiplied by
	// Marks.Factor.
	Count    Counter
	Strategy Strategy
	// Low is the size that a cut leaves, in per cent of Room; 0 means DefaultLow. Because
	// of the gap, the first messages stay the same from call to call.
	Low int
	// KeepResults is the number of the newest tool results that keep their text when old
	// ones are cleared; 0 means DefaultKeepResults, a negative number clears none.
	KeepResults int
	// MaxResult is the number of tokens of one tool result that are shown, as its head and
	// tail; 0 means a quarter of Room.
	MaxResult int
	// Summary is the maximum number of tokens of a summary; 0 means an eighth of Room, at
	// most 1,024.
	Summary int
	// Reader is the name of the tool that reads cleared or shortened results, "" if the
	// model has none.
	Reader string
}

// Defaults of a ViewSpec.
const (
	DefaultLow         = 60 // per cent
	DefaultKeepResults = 3
)

// ViewSettings are a context's settings of views; see ViewSpec.
type ViewSettings struct {
	Strategy    Strategy `json:"strategy,omitempty"`
	Low         int      `json:"low,omitempty"`
	KeepResults int      `json:"keep_results,omitempty"`
	MaxResult   int      `json:"max_result,omitempty"`
	Summary     int      `json:"summary,omitempty"`
	// Model makes the summaries, as "provider/model"; "" means the model of the call.
	Model string `json:"model,omitempty"`
}

// Override returns v with the fields of o that are set.
func (v ViewSettings) Override(o ViewSettings) ViewSettings {
	return ViewSettings{
		Strategy: cmp.Or(o.Strategy, v.Strategy), Low: cmp.Or(o.Low, v.Low),
		KeepResults: cmp.Or(o.KeepResults, v.KeepResults), MaxResult: cmp.Or(o.MaxResult, v.MaxResult),
		Summary: cmp.Or(o.Summary, v.Summary), Model: cmp.Or(o.Model, v.Model),
	}
}

// Marks are what earlier views decided to omit. They are stored with the context, so that
// the next view begins with the same messages.
type Marks struct {
	// Cut: of the messages before this position only the Pins are shown.
	Cut int `json:"cut,omitempty"`
	// Pins are positions before Cut, in order.
	Pins []int `json:"pins,omitempty"`
	// Cleared: tool results before this position are shown without their text, unless
	// pinned.
	Cleared int `json:"cleared,omitempty"`
	// Summary replaces the omitted messages.
	Summary *Summary `json:"summary,omitempty"`
	// Factor is multiplied with counts, in per cent; 0 means 100.
	Factor int `json:"factor,omitempty"`
	// Learned is the factor learned from reported usage, which the next cut adopts; 0 if
	// there is none.
	Learned int `json:"learned,omitempty"`
	// SummaryPause is set while no summary is requested.
	SummaryPause SummaryPause `json:"rest,omitzero"`
}

// SummaryPause records that the last Times summaries failed, so that none is requested
// before the history has Until messages.
type SummaryPause struct {
	Until    int `json:"until"`
	Failures int `json:"times"`
}

// The shortest and the longest pause, in messages.
const (
	minSummaryPause = 16
	maxSummaryPause = 256
)

// Next returns the pause after one more failure with a history of n messages: twice as long
// as the last one, at first 16 messages and at most 256.
func (r SummaryPause) Next(n int) SummaryPause {
	long := minSummaryPause
	for i := 0; i < r.Failures && long < maxSummaryPause; i++ {
		long *= 2
	}
	return SummaryPause{Until: n + long, Failures: r.Failures + 1}
}

// Summary is a text that replaces the messages at positions From up to but not including
// To, except for pinned ones.
type Summary struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Text string `json:"text"`
}

// Equal reports whether both omit the same and pause equally long.
func (m Marks) Equal(o Marks) bool {
	same := m.Summary == o.Summary || m.Summary != nil && o.Summary != nil && *m.Summary == *o.Summary
	return same && m.Cut == o.Cut && m.Cleared == o.Cleared && m.Factor == o.Factor && m.SummaryPause == o.SummaryPause && slices.Equal(m.Pins, o.Pins)
}

// View is the messages of one model call, selected from a context.
type View struct {
	// Messages are paired and in order. They must not be changed.
	Messages []Message
	// Tokens is their size.
	Tokens int
	// groups are those of the messages after the cut.
	groups []*group
	// Marks must be stored when the call is made.
	Marks Marks
	// Need, if set, is what must be summarised first; the view must not be sent then.
	Need *Need
	// Manifest lists what was included, what was left out, and why.
	Manifest Manifest
}

// Since returns how many of the messages, at the end, are at position pos or later; -1 if
// that is unknown, because messages on both sides of it were repaired together.
func (v View) Since(pos int) int {
	n := 0
	for i := len(v.groups) - 1; i >= 0 && v.groups[i].end > pos; i-- {
		g := v.groups[i]
		if g.at >= pos {
			n += len(g.out)
			continue
		}
		if g.repaired > 0 || len(g.out) != len(g.source) {
			return -1
		}
		for _, p := range g.pos {
			if p >= pos {
				n++
			}
		}
	}
	return n
}

// Need asks for a summary.
type Need struct {
	// From and To are the positions that the summary will replace.
	From, To int
	// Messages are the messages to summarise; an older summary comes first.
	Messages []Message
	// Tokens limits the summary.
	Tokens int
}

// Manifest describes by position which part of its context a view shows.
type Manifest struct {
	// To is the length of the history, and From the position at which the view begins; only
	// pinned messages come before it.
	From int   `json:"from,omitempty"`
	To   int   `json:"to"`
	Pins []int `json:"pins,omitempty"`
	// Omitted is the number of messages that are not shown.
	Omitted int `json:"left,omitempty"`
	// Cleared is the number of tool results without their text (those before
	// Marks.Cleared), Short the number of those with only head and tail.
	Cleared   int `json:"cleared,omitempty"`
	Shortened int `json:"short,omitempty"`
	// Repaired is the number of messages that were removed or changed because providers
	// reject them.
	Repaired int `json:"repaired,omitempty"`
	// Summary is the range that a summary in the view replaces.
	Summary *[2]int `json:"summary,omitempty"`
	Tokens  int     `json:"tokens"`
	Room    int     `json:"room"`
	// Reason says why this view omits more than the last one.
	Reason string `json:"why,omitempty"`
}

// TooLarge is an ErrTooLarge with figures, in tokens.
type TooLarge struct {
	Need, Room int
	// Largest names the largest message and its size.
	Largest string
}

// Error says what does not fit and by how much.
func (e *TooLarge) Error() string {
	return fmt.Sprintf("the messages that must be sent take %d tokens and the room is %d, %d too many; "+
		"the largest is %s", e.Need, e.Room, e.Need-e.Room, e.Largest)
}

// Unwrap returns ErrTooLarge.
func (*TooLarge) Unwrap() error { return ErrTooLarge }

// View selects the messages of a model call: the current epoch, repaired, without what the
// context's marks omit. If that does not fit the room, the marks are moved: first old tool
// results lose their text, then whole groups (a message with calls and their results is
// one) are omitted from the oldest on, until the view is at its low mark. Pinned messages,
// system messages, the user's newest message and the last group stay; tool results among
// them are shortened before a view fails with ErrTooLarge. View is deterministic.
func (c Context) View(spec ViewSpec) (View, error) {
	s, err := newSelection(c, spec.withDefaults())
	if err != nil {
		return View{}, err
	}
	return s.result()
}

func (v ViewSpec) withDefaults() ViewSpec {
	v.Room = max(v.Room, 1)
	if v.Strategy == "" {
		v.Strategy = Window
	}
	if v.Low <= 0 || v.Low > 100 {
		v.Low = DefaultLow
	}
	if v.KeepResults == 0 {
		v.KeepResults = DefaultKeepResults
	}
	if v.Strategy == All {
		v.MaxResult = math.MaxInt / 1000 // blocks room for the multiplication by a factor
	}
	if v.MaxResult <= 0 {
		v.MaxResult = max(v.Room/4, 1)
	}
	if v.Summary <= 0 {
		v.Summary = max(min(v.Room/8, 1024), 1)
	}
	return v
}
