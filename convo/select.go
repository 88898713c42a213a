package convo

import (
	"fmt"
	"slices"
	"strings"
)

// selection is a view under construction: the groups of a context that its marks show.
type selection struct {
	spec  ViewSpec
	c     Context
	marks Marks

	head   []*group // pins, and the summary
	groups []*group // from the cut on
	tokens int      // of everything shown
	// lastUserPos is the position of the user's newest message, -1 if there is none.
	lastUserPos int
	// shown are the messages of head and groups. Views share it, so it may only be appended
	// to.
	shown []Message
	// replaced are messages after shown, in the same array, that earlier views have and that
	// are read again. Those that are the same stay; before another is written, shown is copied.
	replaced []Message
	reasons  []string
	// shortened says that results were shortened for this view only.
	shortened bool
}

// group is the unit that is shown or omitted: one message, or one with calls and their
// results.
type group struct {
	at, end   int // positions, end exclusive
	source    []Message
	pos       []int // of raw
	out       []Message
	tokens    int
	pinned    bool
	repaired  int // number of raw messages that are not sent unchanged
	cleared   int // number of messages in out without their text
	shortened int // number of shortened messages
	// resultCap limits the tokens of each result in the group; 0 means the limit of the
	// spec
	resultCap int
}

func newSelection(c Context, spec ViewSpec) (*selection, error) {
	s := &selection{spec: spec, c: c, marks: c.Marks, lastUserPos: -1}
	if s.marks.Cut < c.Epoch {
		s.marks = Marks{Cut: c.Epoch, Cleared: c.Epoch, Factor: c.Marks.Factor, Learned: c.Marks.Learned}
	}
	if err := s.readHead(); err != nil {
		return nil, err
	}
	return s, s.readFrom(s.marks.Cut)
}

// reselect repeats the selection after the marks were moved.
func (s *selection) reselect(moved Marks) error {
	c := s.c
	c.Marks = moved
	n, err := newSelection(c, s.spec)
	if err != nil {
		return err
	}
	n.reasons = s.reasons
	*s = *n
	return nil
}

// extendedTo returns a selection of c that continues where s ends or, if the newest
// messages were replaced (a turn's own by those that were committed of it), after the last
// message that both have. It takes ownership of s. It returns nil if c has a different
// beginning.
func (s *selection) extendedTo(c Context) (*selection, error) {
	keep := s.sharedGroups(c)
	if keep == 0 {
		return nil, nil
	}
	from := s.groups[keep-1].end
	next, err := c.History.Read(from)
	if err != nil {
		return nil, err
	}
	if next.Role == Tool && s.groups[keep-1].source[0].Role == Assistant { // the last group continues
		keep--
		from = s.groups[keep].at
	}
	s.keepGroups(keep)
	s.c, s.reasons, s.marks.Learned = c, nil, c.Marks.Learned
	err = s.readFrom(from)
	s.dropReplaced()
	return s, err
}

// dropReplaced has the next message be written to another array than the one in which
// earlier views have others at its place.
func (s *selection) dropReplaced() {
	if len(s.replaced) > 0 {
		s.shown, s.replaced = slices.Clip(s.shown), nil
	}
	if len(s.shown) == 0 {
		s.shown = nil
	}
}

// sharedGroups returns how many of the first groups are also the first of a selection of c.
func (s *selection) sharedGroups(c Context) int {
	if c.ID != s.c.ID || c.Epoch != s.c.Epoch || !c.Marks.Equal(s.marks) || s.c.History.versions || c.History.versions {
		return 0
	}
	keep := len(s.groups)
	for keep > 0 && !s.sharesPrefix(c, s.groups[keep-1].end-1) {
		keep--
	}
	return keep
}

// exceededBy reports whether what a selection of c has in common with s exceeds the room.
// The last of the common groups may continue in c, so that it does not count.
func (s *selection) exceededBy(c Context) bool {
	keep := s.sharedGroups(c)
	if keep < 2 {
		return false
	}
	tokens := s.tokens
	for _, g := range s.groups[keep-1:] {
		tokens -= g.tokens
	}
	return tokens > s.spec.Room
}

// sharesPrefix reports whether c has the same message at that position, and therefore the
// same messages before it.
func (s *selection) sharesPrefix(c Context, pos int) bool {
	if pos >= c.History.Len() {
		return false
	}
	p := c.History.messageAt(pos)
	return p != nil && p == s.c.History.messageAt(pos)
}

// keepGroups removes all groups but the first n.
func (s *selection) keepGroups(n int) {
	if n == len(s.groups) {
		return
	}
	left := len(s.shown)
	for _, g := range s.groups[n:] {
		s.tokens -= g.tokens
		left -= len(g.out)
	}
	s.groups, s.shown, s.replaced = s.groups[:n:n], s.shown[:left], s.shown[left:]
	s.lastUserPos = -1
	for _, list := range [][]*group{s.groups, s.head} {
		for i := len(list) - 1; i >= 0 && s.lastUserPos < 0; i-- {
			if g := list[i]; g.at >= 0 && g.source[0].Role == User {
				s.lastUserPos = g.at
			}
		}
	}
}

// readHead makes the groups before the cut.
func (s *selection) readHead() error {
	var rest []*group
	for i := 0; i < len(s.marks.Pins); {
		end := i + 1
		m, err := s.c.newestAt(s.marks.Pins[i])
		if err != nil {
			return err
		}
		g := &group{at: s.marks.Pins[i]}
		g.add(s.marks.Pins[i], m)
		for ; m.Role == Assistant && end < len(s.marks.Pins); end++ {
			r, err := s.c.newestAt(s.marks.Pins[end])
			if err != nil {
				return err
			}
			if r.Role != Tool {
				break
			}
			g.add(s.marks.Pins[end], r)
		}
		i = end
		if m.Role == System {
			s.head = append(s.head, g)
		} else {
			rest = append(rest, g)
		}
		if m.Role == User {
			s.lastUserPos = g.at
		}
	}
	s.head = append(s.head, s.summary()...)
	s.head = append(s.head, rest...)
	for _, g := range s.head {
		s.closeGroup(g)
	}
	return nil
}

// summary returns the group of the summary, if there is one.
func (s *selection) summary() []*group {
	if s.marks.Summary == nil {
		return nil
	}
	return []*group{{at: -1, end: -1, source: []Message{s.marks.Summary.asMessage()}, pos: []int{-1}, pinned: true}}
}

// asMessage returns the message that presents a summary to a model. It is a user message,
// because it must not carry more weight than what it replaces.
func (y Summary) asMessage() Message {
	return Message{
		Role: User,
		Text: fmt.Sprintf("[A model's summary of messages %d to %d of this conversation, which are not shown. "+
			"It reports what was said and gives no instructions.]\n%s", y.From+1, y.To, y.Text),
	}
}

// readFrom adds the messages from that position on.
func (s *selection) readFrom(from int) error {
	entries, err := s.c.entries(from)
	if err != nil {
		return err
	}
	var open *group
	for _, e := range entries {
		if e.m.Role == Tool && open != nil && open.source[0].Role == Assistant {
			open.add(e.pos, e.m)
			continue
		}
		if open != nil {
			s.closeGroup(open)
		}
		open = &group{at: e.pos}
		open.add(e.pos, e.m)
		s.groups = append(s.groups, open)
		if e.m.Role == User {
			s.lastUserPos = e.pos
		}
	}
	if open != nil {
		s.closeGroup(open)
	}
	return nil
}

// closeGroup renders and counts the last group, which is complete.
func (s *selection) closeGroup(g *group) {
	s.render(g)
	s.tokens += g.tokens
	for i := range g.out {
		if len(s.replaced) > 0 && s.replaced[0].Equal(g.out[i]) {
			s.shown, s.replaced = s.shown[:len(s.shown)+1], s.replaced[1:]
			continue
		}
		s.dropReplaced()
		s.shown = append(s.shown, g.out[i])
	}
}

type positionedMessage struct {
	pos int
	m   Message
}

// entries yields the messages of the current epoch with a first version at position from or
// later, each in its newest version in the place of its first.
func (c Context) entries(from int) ([]positionedMessage, error) {
	start := from
	if c.History.versions {
		start = c.Epoch
	}
	if err := c.History.Load(start, c.History.Len()); err != nil {
		return nil, err
	}
	out := make([]positionedMessage, 0, c.History.Len()-start)
	place := make(map[string]int)
	for i := start; i < c.History.Len(); i++ {
		m, err := c.History.Read(i)
		if err != nil {
			return nil, err
		}
		if c.History.versions && m.ID != "" {
			if p, seen := place[m.ID]; seen {
				out[p].m = m
				continue
			}
			place[m.ID] = len(out)
		}
		out = append(out, positionedMessage{i, m})
	}
	return slices.DeleteFunc(out, func(e positionedMessage) bool { return e.pos < from }), nil
}

// newestAt returns the newest version of the message at a position.
func (c Context) newestAt(pos int) (Message, error) {
	m, err := c.History.Read(pos)
	if err != nil || !c.History.versions || m.ID == "" {
		return m, err
	}
	newest, at, err := c.History.Lookup(m.ID)
	if at >= pos {
		m = newest
	}
	return m, err
}

func (g *group) add(pos int, m Message) {
	g.source, g.pos, g.end = append(g.source, m), append(g.pos, pos), pos+1
	g.pinned = g.pinned || m.Pinned || m.Role == System
}

// render makes the shown messages of a group: repaired, with results cleared and shortened.
func (s *selection) render(g *group) {
	g.out, g.tokens, g.repaired, g.cleared, g.shortened = nil, 0, 0, 0, 0
	raw := g.source
	if s.canShorten(g) {
		raw = slices.Clone(g.source)
		s.trimResults(g, raw)
	}
	switch g.source[0].Role {
	case Tool: // without a call
	case Assistant:
		if validateGroup(raw[0].Calls, raw[1:]) == nil && !raw[0].empty() {
			g.out = raw
		} else {
			g.out = appendGroup(nil, raw[0], raw[1:])
		}
	case System, User:
		g.out = raw
	}
	if len(g.out) != len(raw) || len(g.out) > 0 && len(g.out[0].Calls) != len(raw[0].Calls) {
		g.repaired = max(len(raw)-len(g.out), 1)
	}
	for _, m := range g.out {
		g.tokens += s.count(m)
	}
}

// canShorten reports whether a result of the group may have to be shortened. A token has at
// least one byte.
func (s *selection) canShorten(g *group) bool {
	for i, m := range g.source {
		if m.Role == Tool && (g.pos[i] < s.marks.Cleared || len(m.Text) > s.groupLimit(g) || len(m.Parts) > 0) {
			return true
		}
	}
	return false
}

// groupLimit returns the number of the counter's tokens that a result of the group may
// have.
func (s *selection) groupLimit(g *group) int {
	n := s.spec.MaxResult
	if g.resultCap > 0 {
		n = min(n, g.resultCap)
	}
	return s.rawTokens(n)
}

func (s *selection) count(m Message) int {
	n := s.spec.Count.Message(m)
	if f := s.marks.Factor; f > 0 && f != 100 {
		return (n*f + 99) / 100
	}
	return n
}

// rawTokens converts n tokens of the view to tokens of the counter.
func (s *selection) rawTokens(n int) int {
	if f := s.marks.Factor; f > 100 {
		return n * 100 / f
	}
	return n
}

// result fits the selection into the room and returns it as a view.
func (s *selection) result() (View, error) {
	need, err := s.fitRoom()
	if err != nil {
		return View{}, err
	}
	v := View{Tokens: s.tokens, Marks: s.marks, Need: need, groups: s.groups}
	v.Marks.Pins = slices.Clone(s.marks.Pins)
	v.Messages = slices.Clip(s.shown)
	v.Manifest = s.manifest()
	return v, nil
}

func (s *selection) manifest() Manifest {
	m := Manifest{
		From: s.marks.Cut, To: s.c.History.Len(), Pins: slices.Clone(s.marks.Pins), Tokens: s.tokens, Room: s.spec.Room,
		Reason: strings.Join(s.reasons, "; "),
	}
	m.Omitted = s.marks.Cut - s.c.Epoch
	for _, p := range s.marks.Pins {
		if p >= s.c.Epoch { // earlier messages were not to be shown
			m.Omitted--
		}
	}
	if y := s.marks.Summary; y != nil {
		m.Summary = &[2]int{y.From, y.To}
	}
	for _, list := range [][]*group{s.head, s.groups} {
		for _, g := range list {
			m.Cleared += g.cleared
			m.Shortened += g.shortened
			m.Repaired += g.repaired
		}
	}
	return m
}
