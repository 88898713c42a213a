package convo

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrTooLarge: what a view cannot leave out does not fit into its room.
var ErrTooLarge = errors.New("what has to be sent does not fit")

// Strategy is what happens when a history outgrows the room of a view.
type Strategy string

// The strategies. Window is the default.
const (
	// Window leaves out the oldest messages.
	Window Strategy = "window"
	// Summarise has a summary stand for what is left out.
	Summarise Strategy = "summary"
	// All leaves out nothing: what does not fit is ErrTooLarge.
	All Strategy = "all"
)

// Counter counts tokens. Its methods must give the same for the same.
type Counter interface {
	// Message is what a message costs in a request.
	Message(m Message) int
	// Head and Tail return the longest beginning and end of a text that are at
	// most n tokens.
	Head(text string, n int) string
	Tail(text string, n int) string
}

// ViewSpec says how a view is made. Two specs that are equal give equal views
// of equal contexts.
type ViewSpec struct {
	// Room is how many tokens the messages may take, at least 1: the window
	// less system instructions, tools and reserve.
	Room int
	// Count counts them; it must be comparable. Its counts are taken times
	// Marks.Factor.
	Count    Counter
	Strategy Strategy
	// Low is what a cut leaves, in per cent of Room; 0 is DefaultLow. The gap
	// between the two keeps the messages in front the same from call to call.
	Low int
	// KeepResults is how many of the newest tool results keep their text when
	// old ones are cleared; 0 is DefaultKeepResults, below 0 clears none.
	KeepResults int
	// MaxResult is how many tokens of one tool result are shown, its head and
	// tail; 0 is a quarter of Room.
	MaxResult int
	// Summary is how many tokens a summary may have; 0 is an eighth of Room, at
	// most 1,024.
	Summary int
	// Reader is the name of the tool that reads what was cleared or cut short,
	// "" where the model has none.
	Reader string
}

// Defaults of a ViewSpec.
const (
	DefaultLow         = 60 // per cent
	DefaultKeepResults = 3
)

// ViewSettings is what a context's settings say of its views; see ViewSpec.
type ViewSettings struct {
	Strategy    Strategy `json:"strategy,omitempty"`
	Low         int      `json:"low,omitempty"`
	KeepResults int      `json:"keep_results,omitempty"`
	MaxResult   int      `json:"max_result,omitempty"`
	Summary     int      `json:"summary,omitempty"`
	// Model makes the summaries, as "provider/model"; "" is the model asked.
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

// Marks are what earlier views decided to leave out. They are kept with the
// context, so that the next view begins with the same messages.
type Marks struct {
	// Cut: of the messages before this position only the Pins are shown.
	Cut int `json:"cut,omitempty"`
	// Pins are positions before Cut, in order.
	Pins []int `json:"pins,omitempty"`
	// Cleared: tool results before this position that are not pinned are shown
	// without their text.
	Cleared int `json:"cleared,omitempty"`
	// Summary stands for what is not shown.
	Summary *Summary `json:"summary,omitempty"`
	// Factor is what counts are multiplied by, in per cent; 0 is 100.
	Factor int `json:"factor,omitempty"`
	// Learned is the factor that a vendor's reports show, taken over at the next
	// cut; 0 where there is none.
	Learned int `json:"learned,omitempty"`
	// SummaryPause is set while no summary is asked for.
	SummaryPause SummaryPause `json:"rest,omitzero"`
}

// SummaryPause says that the last summaries failed, Times of them in a row, so that none is
// asked for before the history has Until messages.
type SummaryPause struct {
	Until    int `json:"until"`
	Failures int `json:"times"`
}

// The shortest and the longest rest, in messages.
const (
	minSummaryPause = 16
	maxSummaryPause = 256
)

// Next is the rest after one more failure with a history of n messages: twice as
// long as the one before, 16 messages at first and 256 at most.
func (r SummaryPause) Next(n int) SummaryPause {
	long := minSummaryPause
	for i := 0; i < r.Failures && long < maxSummaryPause; i++ {
		long *= 2
	}
	return SummaryPause{Until: n + long, Failures: r.Failures + 1}
}

// Summary is a text that stands for the messages at positions From up to To,
// which is not included, those that are pinned apart.
type Summary struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Text string `json:"text"`
}

// Equal reports whether both leave out the same, and rest as long.
func (m Marks) Equal(o Marks) bool {
	same := m.Summary == o.Summary || m.Summary != nil && o.Summary != nil && *m.Summary == *o.Summary
	return same && m.Cut == o.Cut && m.Cleared == o.Cleared && m.Factor == o.Factor && m.SummaryPause == o.SummaryPause && slices.Equal(m.Pins, o.Pins)
}

// View is what one model call is given of a context.
type View struct {
	// Messages are paired and in order, and must not be changed.
	Messages []Message
	// Tokens is what they count.
	Tokens int
	// groups are those of the messages from the cut on.
	groups []*group
	// Marks are to be kept where the call is made.
	Marks Marks
	// Need, where set, is what is to be summarised first; the view is then not
	// to be sent.
	Need *Need
	// Manifest says what went in, what did not, and why.
	Manifest Manifest
}

// Since is how many of the messages, at the end, are at position pos or later;
// -1 where that cannot be told, because some of those at both sides of it had to
// be repaired together.
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
	// From and To are the positions it will stand for.
	From, To int
	// Messages are what is to be summarised, an older summary first.
	Messages []Message
	// Tokens bounds the summary.
	Tokens int
}

// Manifest says what a view shows of its context, by position.
type Manifest struct {
	// To is how long the history was, and From where the view begins; before
	// it there are only pins.
	From int   `json:"from,omitempty"`
	To   int   `json:"to"`
	Pins []int `json:"pins,omitempty"`
	// Omitted is how many messages are not shown.
	Omitted int `json:"left,omitempty"`
	// Cleared is how many tool results are shown without their text (those
	// before Marks.Cleared), Short of how many head and tail alone are shown.
	Cleared   int `json:"cleared,omitempty"`
	Shortened int `json:"short,omitempty"`
	// Repaired is how many messages were left out or changed because no
	// provider takes them as they are.
	Repaired int `json:"repaired,omitempty"`
	// Summary is the range that a summary in the view stands for.
	Summary *[2]int `json:"summary,omitempty"`
	Tokens  int     `json:"tokens"`
	Room    int     `json:"room"`
	// Reason says what made this view leave out more than the one before.
	Reason string `json:"why,omitempty"`
}

// TooLarge is an ErrTooLarge with its figures, in tokens.
type TooLarge struct {
	Need, Room int
	// Largest says which message takes most, and how much.
	Largest string
}

// Error says what does not fit and by how much.
func (e *TooLarge) Error() string {
	return fmt.Sprintf("the messages that have to be sent take %d tokens and there is room for %d, %d too many; "+
		"the largest is %s", e.Need, e.Room, e.Need-e.Room, e.Largest)
}

// Unwrap returns ErrTooLarge.
func (*TooLarge) Unwrap() error { return ErrTooLarge }

// View selects what a model call is given: the current epoch repaired, less
// what the context's marks leave out; and where that does not fit the room, the
// marks are moved: first old tool results lose their text, then whole groups (a
// message with calls and their results is one) are left out from the oldest on,
// until the view is at its low mark. Pinned messages, system messages, the
// person's newest and the last group stay; tool results among them are cut
// short before a view fails with ErrTooLarge. The same arguments give the same
// view.
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
		v.MaxResult = math.MaxInt / 1000 // leaves room to take it times a factor
	}
	if v.MaxResult <= 0 {
		v.MaxResult = max(v.Room/4, 1)
	}
	if v.Summary <= 0 {
		v.Summary = max(min(v.Room/8, 1024), 1)
	}
	return v
}
