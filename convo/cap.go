package convo

import "slices"

// Cap returns the context with a new epoch that has at most maxMessages of the newest
// messages and, of these, as many as have at most that many tokens by count; a limit of 0
// does not apply. The epoch never begins with a tool result, so that calls keep their
// results. Earlier pinned messages stay in views, and so does a summary. Cap moves the
// context's marks, so the context must not have been shown since it was restored.
func (c Context) Cap(messages, tokens int, count Counter) (Context, error) {
	from, n := c.Epoch, c.History.Len()
	if messages > 0 {
		from = max(from, n-messages)
	}
	if tokens > 0 {
		var err error
		if from, err = c.firstWithin(from, tokens, count); err != nil {
			return c, err
		}
	}
	for ; from > c.Epoch && from < n; from++ {
		m, err := c.History.Read(from)
		if err != nil {
			return c, err
		}
		if m.Role != Tool {
			break
		}
	}
	if from == c.Epoch {
		return c, nil
	}
	marks, err := c.marksCutAt(from)
	if err != nil {
		return c, err
	}
	if marks.Cut != c.Marks.Cut {
		c.Session = "" // the provider's conversation begins earlier
	}
	c.Epoch, c.Marks = from, marks
	return c, nil
}

// firstWithin returns the first position, not before from, from which on the messages have
// at most that many tokens.
func (c Context) firstWithin(from, tokens int, count Counter) (int, error) {
	for i := c.History.Len() - 1; i >= from; i-- {
		m, err := c.History.Read(i)
		if err != nil {
			return 0, err
		}
		n := count.Message(m)
		if f := c.Marks.Factor; f > 0 {
			n = (n*f + 99) / 100
		}
		if tokens -= n; tokens < 0 {
			return i + 1, nil
		}
	}
	return from, nil
}

// marksCutAt returns the marks with a cut at from or later.
func (c Context) marksCutAt(from int) (Marks, error) {
	marks := c.Marks
	if marks.Cut < c.Epoch { // they belong to an earlier epoch
		marks = Marks{Cut: c.Epoch, Cleared: c.Epoch, Factor: marks.Factor, Learned: marks.Learned}
	}
	if marks.Cut >= from {
		return marks, nil
	}
	marks.Pins = slices.Clone(marks.Pins)
	for i := marks.Cut; i < from; {
		end, pinned, err := c.groupEndAt(i, from)
		if err != nil {
			return marks, err
		}
		for ; i < end; i++ {
			if pinned {
				marks.Pins = append(marks.Pins, i)
			}
		}
	}
	marks.Cut = from
	return marks, nil
}

// groupEndAt returns the end of the group that begins at position i, and whether it is
// pinned.
func (c Context) groupEndAt(i, n int) (end int, pinned bool, err error) {
	first, err := c.History.Read(i)
	if err != nil {
		return 0, false, err
	}
	pinned = first.Pinned || first.Role == System
	for end = i + 1; first.Role == Assistant && end < n; end++ {
		m, err := c.History.Read(end)
		if err != nil {
			return 0, false, err
		}
		if m.Role != Tool {
			break
		}
		pinned = pinned || m.Pinned
	}
	return end, pinned, nil
}
