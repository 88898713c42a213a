package cli

import (
	"bufio"
	"context"
	"os"
	"strings"
)

// inputLines reads the lines of stdin. One goroutine reads at a time: where the reader of a
// line has stopped waiting for it, the next one gets it.
type inputLines struct {
	in      *bufio.Reader
	pending chan inputLine // of the read that is under way, nil for none
}

type inputLine struct {
	text string
	err  error
}

// readLine reads a line of stdin, or returns when ctx ends.
func (p *cli) readLine(ctx context.Context) (string, error) {
	t := &p.input
	if t.in == nil {
		t.in = bufio.NewReader(p.in)
	}
	if t.pending == nil {
		t.pending = make(chan inputLine, 1)
		go func(to chan<- inputLine) {
			text, err := t.in.ReadString('\n')
			to <- inputLine{text, err}
		}(t.pending)
	}
	select {
	case line := <-t.pending:
		t.pending = nil
		if line.err != nil && line.text == "" {
			return "", line.err
		}
		return strings.TrimRight(line.text, "\r\n"), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// discardTyped drops what was typed before the question that is about to be shown, so
// that it does not answer that question. Lines of a file or pipe are kept.
func (p *cli) discardTyped() {
	f, ok := p.in.(*os.File)
	if !ok || !isTerminal(f) {
		return
	}
	_ = discardInput(f) // a terminal that cannot do it shows what it was given
	switch t := &p.input; {
	case t.pending != nil:
		select {
		case line := <-t.pending:
			if line.err != nil {
				t.pending <- line
				return
			}
			t.pending = nil
		default:
		}
	case t.in != nil:
		_, _ = t.in.Discard(t.in.Buffered())
	}
}
