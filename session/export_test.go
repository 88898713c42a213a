package session

import "time"

// SetPoll sets how often the process reads a round of another one where the store reports commits. It must be called
// before the first message.
func (s *Session) SetPoll(d time.Duration) { s.m.poll = d }
