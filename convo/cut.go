package convo

import (
	"fmt"
	"slices"
)

// fitRoom moves the marks until the selection fits, and returns what must be summarised for
// that, if anything.
func (s *selection) fitRoom() (*Need, error) {
	room := s.spec.Room
	if s.tokens <= room {
		return nil, nil
	}
	s.reasons = append(s.reasons, fmt.Sprintf("%d tokens exceeded the room of %d", s.tokens, room))
	if s.spec.Strategy == All {
		return nil, s.tooLargeError()
	}
	if err := s.clearResults(); err != nil {
		return nil, err
	}
	low := room * s.spec.Low / 100
	if s.spec.Strategy == Summarise {
		low = max(low-s.spec.Summary, 0)
	}
	if s.tokens > low {
		need, err := s.cutGroups(low)
		if err != nil {
			return nil, err
		}
		if need != nil {
			return need, s.shortenToRoom(room - s.summaryGrowth(need))
		}
	}
	return nil, s.shortenToRoom(room)
}

// shortenToRoom shortens results so that at most room tokens are shown. If that is
// impossible, it returns ErrTooLarge.
func (s *selection) shortenToRoom(room int) error {
	if s.tokens > room {
		s.shortenResults(s.resultLimit(room))
	}
	if s.tokens > room { // placeholders exceeded the share
		s.shortenResults(1)
	}
	if s.tokens > room {
		s.tokens += s.spec.Room - room
		return s.tooLargeError()
	}
	return nil
}

// summaryGrowth returns the number of tokens that the needed summary may take over what it
// replaces. A summary that would not fit must not be paid for.
func (s *selection) summaryGrowth(need *Need) int {
	n := s.count(Summary{From: need.From, To: need.To}.asMessage()) + need.Tokens + 8 // tokens may differ where texts meet
	if s.marks.Summary != nil {
		n -= s.count(s.marks.Summary.asMessage())
	}
	return n
}

// clearResults removes the text of all tool results, except for the newest ones and those
// of the last group, which the model has not seen yet.
func (s *selection) clearResults() error {
	if s.spec.KeepResults < 0 {
		return nil
	}
	keep, moved := s.spec.KeepResults, s.marks
	for i := len(s.groups) - 2; i >= 0; i-- {
		g := s.groups[i]
		if keep > 0 {
			keep -= len(g.source) - 1
			continue
		}
		moved.Cleared = max(moved.Cleared, g.end)
		break
	}
	if moved.Cleared == s.marks.Cleared {
		return nil
	}
	return s.reselect(moved)
}

// cutGroups omits the oldest groups until at most low tokens are shown and, unless that
// would omit over half as much again, the first shown message is the user's. With summaries
// it returns the one that is needed.
func (s *selection) cutGroups(low int) (*Need, error) {
	if s.hasPriorities() {
		return s.cutByPriority(low)
	}
	n := s.groupsToCut(low)
	if n == 0 {
		return nil, nil
	}
	moved := s.marks
	moved.Cut = s.groups[n].at
	moved.Pins = nil
	for _, g := range append(slices.Clone(s.head), s.groups[:n]...) {
		if s.isKept(g) {
			moved.Pins = append(moved.Pins, g.pos...)
		}
	}
	slices.Sort(moved.Pins)
	need := s.summaryNeed(moved.Cut, slices.DeleteFunc(slices.Clone(s.groups[:n]), s.isKept))
	if err := s.reselect(moved); err != nil {
		return nil, err
	}
	return need, nil
}

// groupsToCut returns the number of groups to omit.
func (s *selection) groupsToCut(low int) int {
	n, left := 0, s.tokens
	for ; n < len(s.groups)-1 && left > low; n++ {
		if !s.isKept(s.groups[n]) {
			left -= s.groups[n].tokens
		}
	}
	for more, rest := n, left; more < len(s.groups) && rest >= low/2; more++ {
		if s.groups[more].source[0].Role == User {
			return more
		}
		rest -= s.groups[more].tokens
	}
	return n
}

// isKept reports whether a group is shown regardless of its age.
func (s *selection) isKept(g *group) bool { return g.at >= 0 && (g.pinned || g.at == s.lastUserPos) }

// summaryNeed returns what must be summarised when the groups, in the order of their
// positions, are omitted and the cut moves to position to: their messages, and the last
// summary.
func (s *selection) summaryNeed(to int, omitted []*group) *Need {
	if s.spec.Strategy != Summarise {
		return nil
	}
	need := &Need{From: s.marks.Cut, To: to, Tokens: s.spec.Summary}
	left, room := 0, s.spec.Room
	if y := s.marks.Summary; y != nil {
		need.From = y.From
		need.Messages = append(need.Messages, y.asMessage())
		room -= s.count(need.Messages[0])
	}
	for _, g := range omitted {
		if len(g.out) == 0 {
			continue
		}
		left++
		need.From = min(need.From, g.at)
		for _, m := range g.out {
			if s.count(m) > room/4 {
				m = s.excerpt(m, s.rawTokens(room/4))
			}
			need.Messages = append(need.Messages, m)
		}
	}
	if left == 0 {
		return nil
	}
	return need
}

// excerpt returns the head and tail of a message of any role.
func (s *selection) excerpt(m Message, tokens int) Message {
	head := s.spec.Count.Head(m.Text, tokens/2)
	tail := s.spec.Count.Tail(m.Text[len(head):], tokens/2)
	m.Text, m.Parts = head+"\n[…]\n"+tail, nil
	return m
}

// resultLimit returns the number of tokens that each result may have so that at most room
// tokens are shown, when the longest results are shortened first.
func (s *selection) resultLimit(room int) int {
	var sizes []int
	others := s.tokens
	for _, g := range append(slices.Clone(s.head), s.groups...) {
		for _, m := range g.out {
			if m.Role == Tool {
				n := s.count(m)
				sizes, others = append(sizes, n), others-n
			}
		}
	}
	slices.Sort(sizes)
	free, limit := room-others, 1
	for i, n := range sizes {
		limit = max(free/(len(sizes)-i), 1)
		if n > limit {
			break
		}
		free -= n
	}
	return limit
}

// shortenResults shortens the shown results to limit tokens each, or to the length of their
// placeholders if that is more.
func (s *selection) shortenResults(limit int) {
	all := append(slices.Clone(s.head), s.groups...)
	s.tokens, s.shown, s.shortened = 0, nil, true
	for i := range all {
		g := new(*all[i]) // earlier views use the old one
		g.resultCap = limit
		s.closeGroup(g)
		all[i] = g
	}
	s.head, s.groups = all[:len(s.head):len(s.head)], all[len(s.head):]
	s.reasons = append(s.reasons, fmt.Sprintf("results were shortened to %d tokens", limit))
}

// tooLargeError describes what does not fit.
func (s *selection) tooLargeError() error {
	e := &TooLarge{Need: s.tokens, Room: s.spec.Room, Largest: "none"}
	most := 0
	for _, g := range append(slices.Clone(s.head), s.groups...) {
		for i, m := range g.out {
			if n := s.count(m); n > most {
				most = n
				e.Largest = fmt.Sprintf("message %d of the history (%s, %d tokens)", g.pos[min(i, len(g.pos)-1)]+1, m.Role, n)
			}
		}
	}
	return fmt.Errorf("view of context %s: %w", s.c.ID, e)
}
