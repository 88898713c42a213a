package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// lineSource is where a chat's lines come from.
type lineSource interface {
	// read returns the next line: io.EOF if there is none, errInterrupted where
	// Ctrl-C came instead.
	read(ctx context.Context, prompt string) (string, error)
	// interactive reports whether a person types them.
	interactive() bool
}

var errInterrupted = errors.New("interrupted")

// lineSource returns the terminal with an editor, where both ends are one, else the
// lines of stdin. Past lines can be brought back in the editor; sessions are the ids
// that it completes.
func (p *cli) lineSource(past []string, sessions func() []string) lineSource {
	if f, ok := p.in.(*os.File); ok && isTerminal(p.in) && isTerminal(p.err) && !p.json {
		return &editor{p: p, in: f, history: past, sessions: sessions}
	}
	return &plainLines{p}
}

// plainLines are the lines of a file or pipe.
type plainLines struct{ p *cli }

func (l *plainLines) read(ctx context.Context, _ string) (string, error) { return l.p.readLine(ctx) }
func (l *plainLines) interactive() bool                                  { return false }

// editor edits lines in a terminal, which is in raw mode while one is typed and
// as it was before and after.
type editor struct {
	p       *cli
	in      *os.File
	history []string
	// sessions are the ids that /session takes.
	sessions func() []string
}

func (e *editor) interactive() bool { return true }

// Add, Len and At are term.History: the newest line is at 0.
func (e *editor) Add(line string) {
	if line = strings.TrimSpace(line); line != "" && (len(e.history) == 0 || e.history[len(e.history)-1] != line) {
		e.history = append(e.history, line)
	}
}

// Len returns how many past lines there are.
func (e *editor) Len() int { return len(e.history) }

// At returns the i-th past line, the newest first.
func (e *editor) At(i int) string { return e.history[len(e.history)-1-i] }

func (e *editor) read(ctx context.Context, prompt string) (string, error) {
	fd := int(e.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer term.Restore(fd, before) //nolint:errcheck // nothing can be done about it
	keys := &keyboard{in: e.in}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, unfiltered(e.p.err)}, e.p.unmarked(e.p.style().ask.Render(prompt)))
	t.History = e
	t.AutoCompleteCallback = e.complete
	if w, h, err := term.GetSize(fd); err == nil && w > 0 && h > 0 {
		_ = t.SetSize(w, h)
	}
	t.SetBracketedPasteMode(true)
	defer t.SetBracketedPasteMode(false)
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := readPasted(t)
		got <- result{line, err}
	}()
	select {
	case r := <-got:
		if errors.Is(r.err, io.EOF) && keys.last == ctrlC {
			_, _ = io.WriteString(unfiltered(e.p.err), "\r\n")
			return "", errInterrupted
		}
		if errors.Is(r.err, io.EOF) {
			_, _ = io.WriteString(unfiltered(e.p.err), "\r\n")
		}
		return r.line, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// readPasted reads a line; the lines of one paste are one.
func readPasted(t *term.Terminal) (string, error) {
	var whole strings.Builder
	for {
		line, err := t.ReadLine()
		whole.WriteString(line)
		if !errors.Is(err, term.ErrPasteIndicator) {
			return whole.String(), err
		}
		whole.WriteByte('\n')
	}
}

const ctrlC = 3

// keyboard reads a byte at a time, so that what is typed ahead is there for who
// reads next, and notes the last, which distinguishes Ctrl-C from Ctrl-D.
type keyboard struct {
	in   io.Reader
	last byte
}

// Read reads keys.
func (k *keyboard) Read(b []byte) (int, error) {
	n, err := k.in.Read(b[:min(len(b), 1)])
	if n > 0 {
		k.last = b[n-1]
	}
	return n, err
}

// complete completes a command at Tab, and the id of a session after /session.
func (e *editor) complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' || !strings.HasPrefix(line, "/") || pos != len(line) {
		return "", 0, false
	}
	var candidates []string
	if rest, ok := strings.CutPrefix(line, "/session "); ok {
		for _, id := range e.sessions() {
			if strings.HasPrefix(id, rest) {
				candidates = append(candidates, "/session "+id)
			}
		}
	} else {
		for _, c := range chatCommands() {
			if strings.HasPrefix("/"+c.name, line) {
				candidates = append(candidates, "/"+c.name+" ")
			}
		}
	}
	whole := completion(line, candidates)
	return whole, len(whole), whole != line
}

// completion returns what a line can be made longer to: the first command, or as much as
// all candidates share.
func completion(line string, candidates []string) string {
	if len(candidates) == 0 {
		return line
	}
	if !strings.HasPrefix(line, "/session ") {
		return candidates[0]
	}
	shared := candidates[0]
	for _, c := range candidates[1:] {
		for !strings.HasPrefix(c, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	return shared
}
