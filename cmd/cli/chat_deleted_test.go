package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// deletingInput gives one line and, before the next, deletes a session.
type deletingInput struct {
	t     *testing.T
	path  string
	lines []string
}

func (d *deletingInput) Read(b []byte) (int, error) {
	if len(d.lines) == 0 {
		return 0, io.EOF
	}
	if len(d.lines) == 1 {
		s, err := sqlite.Open(d.t.Context(), d.path, sqlite.Options{})
		if err == nil {
			_, err = s.DeleteSession(d.t.Context(), "s1", store.DeleteOptions{Force: true})
		}
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(b, d.lines[0]+"\n")
	d.lines = d.lines[1:]
	return n, nil
}

func TestChatReportsDeletedSession(t *testing.T) {
	t.Parallel()
	path, flow := sessionWithQueue(t)
	var out, stderr bytes.Buffer
	in := &deletingInput{t: t, path: path, lines: []string{"one", "two"}}
	code := command(t.Context(), []string{"--db", path, "chat", flow, "--session", "s1"}, terminal{in, &out, &stderr})
	if code != exitFailed || out.String() != "heard one\n" {
		t.Errorf("%d %q", code, out.String())
	}
	if s := stderr.String(); !strings.Contains(s, "session s1 was deleted") || !strings.Contains(s, "`weir sessions` lists") || strings.Contains(s, "weir runs") {
		t.Error(s)
	}
	stderr.Reset()
	code = command(t.Context(), []string{"--db", path, "chat", flow, "--session", "s1"}, terminal{strings.NewReader("three\n"), &out, &stderr})
	if code != exitUsage || !strings.Contains(stderr.String(), "`weir sessions` lists") {
		t.Error(code, stderr.String())
	}
}
