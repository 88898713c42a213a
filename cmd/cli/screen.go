package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// screen is stderr as several write to it: lines that stay, from the log and
// from progress, and below the last of them those that are drawn again and
// again. It is safe for use by several goroutines.
type screen struct {
	mu            sync.Mutex
	out           io.Writer
	interruptLine func() // ends a line that something else has begun; nil where nothing does
	drawn         int    // lines below the last one that stays
}

// screen returns the program's one.
func (p *cli) screen() *screen {
	if p.stderr == nil {
		p.stderr = &screen{out: p.err}
	}
	return p.stderr
}

// setInterruptLine has the line that something else has begun on the terminal ended by end before
// lines are put; nil is nothing.
func (s *screen) setInterruptLine(end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interruptLine = end
}

// Write puts lines where they stay. What was drawn is gone until it is drawn
// again.
func (s *screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if s.interruptLine != nil {
		s.interruptLine()
	}
	return s.out.Write(lines)
}

// draw shows lines in place of those drawn before.
func (s *screen) draw(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.out, strings.Join(lines, "\n"))
	s.drawn = len(lines)
}

// erase takes away what was drawn.
func (s *screen) erase() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

func (s *screen) clear() {
	if s.drawn > 0 {
		fmt.Fprintf(unfiltered(s.out), "\r\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}
