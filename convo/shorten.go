package convo

import "fmt"

// minShortenedTokens is the least number of tokens for the head and tail of a result. With
// less room only a placeholder is shown.
const minShortenedTokens = 64

// trimResults clears and shortens the results in raw, which must be the group's own copy.
func (s *selection) trimResults(g *group, raw []Message) {
	limit := s.groupLimit(g)
	for i, m := range raw {
		if m.Role != Tool {
			continue
		}
		n := s.spec.Count.Message(m)
		stub := s.clearedResult(m, g.pos[i], n)
		switch {
		case g.pos[i] < s.marks.Cleared && !m.Pinned && s.spec.Count.Message(stub) < n:
			raw[i] = stub
			g.cleared++
		case n > limit && s.spec.Count.Message(stub) < n:
			raw[i] = s.shortenedResult(m, stub, g.pos[i], n, limit)
			g.shortened++
		}
	}
}

// clearedResult returns a result without its text.
func (s *selection) clearedResult(m Message, pos, tokens int) Message {
	m.Parts = nil
	m.Text = fmt.Sprintf("[This result was cleared to save room: %d tokens.%s]", tokens, s.readHint(pos))
	return m
}

// shortenedResult returns the head and tail of a result, at most limit tokens.
func (s *selection) shortenedResult(m, stub Message, pos, tokens, limit int) Message {
	whole, over := m.Text, 0
	m.Parts = nil
	for room := limit - s.spec.Count.Message(stub) - 8; room >= minShortenedTokens; room -= over {
		head := s.spec.Count.Head(whole, room*2/3)
		tail := s.spec.Count.Tail(whole[len(head):], room-room*2/3)
		m.Text = fmt.Sprintf("%s\n[… %d of %d bytes are left out here to save room (%d tokens in all).%s …]\n%s",
			head, len(whole)-len(head)-len(tail), len(whole), tokens, s.readHint(pos), tail)
		// The text in between may take more than the stub's, and tokens may differ where
		// texts meet.
		if over = s.spec.Count.Message(m) - limit; over <= 0 {
			return m
		}
	}
	return stub
}

// readHint returns the text that says to a model how to read what was omitted.
func (s *selection) readHint(pos int) string {
	if s.spec.Reader == "" {
		return ""
	}
	return fmt.Sprintf(` To read it, call %s with {"result": %d}.`, s.spec.Reader, pos)
}
