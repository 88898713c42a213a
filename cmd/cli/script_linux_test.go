package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// typingAnswers CODE FILE COMMAND... runs a command in a terminal, types a line of the
// file each time that it asks, closes the input when the file has no more lines, and
// wants that exit code. What the terminal showed is stdout.
func typingAnswers(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var lines []string
	if text := strings.TrimRight(ts.ReadFile(args[1]), "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := newConsole(scriptCommand(ctx, ts, args[2:]))
	ts.Check(err)
	defer c.close()
	c.answer(lines)
	_, err = ts.Stdout().Write([]byte(strings.ReplaceAll(c.shown(), "\r\n", "\n")))
	ts.Check(err)
	if got := c.cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d; the terminal showed\n%s", got, want, c.shown())
	}
}

// answer types a line each time that the command asks, then closes its input, until
// it has ended.
func (c *console) answer(lines []string) {
	exited := make(chan struct{})
	go func() {
		_ = c.cmd.Wait() // callers look at the exit code
		close(exited)
	}()
	for from := 0; ; {
		shown := c.shown()
		if text := colours.ReplaceAllString(shown[from:], ""); strings.HasSuffix(text, "\n> ") {
			from = len(shown)
			keys := "\x04"
			if len(lines) > 0 {
				keys, lines = lines[0]+"\n", lines[1:]
			}
			c.press(keys)
		}
		select {
		case <-c.changed:
		case <-exited:
			c.drain()
			return
		}
	}
}

// scriptCommand returns a command of a script in its folder and environment.
func scriptCommand(ctx context.Context, ts *testscript.TestScript, args []string) *exec.Cmd {
	var program string
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, args[0]); program == "" {
			if _, err := os.Stat(path); err == nil {
				program = path
			}
		}
	}
	cmd := exec.CommandContext(ctx, program, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "USER", "WORK", "TMPDIR", "TERM", "EXAMPLES", "MODEL_URL", "MODEL_ROOT", "GORACE"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	return cmd
}
