package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// console is a pseudo-terminal with a command in it.
type console struct {
	t       *testing.T
	tty     *os.File
	cmd     *exec.Cmd
	mu      sync.Mutex
	output  bytes.Buffer
	from    int // of seen, what was waited for already
	changed chan struct{}
	// ended is closed when the command and all that it started have closed the terminal.
	ended chan struct{}
}

func consoleWith(t *testing.T, dir string, args ...string) *console {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Args = append([]string{"weir"}, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TERM=xterm", "HOME="+dir)
	c, err := newConsole(cmd)
	if errors.Is(err, errNoTerminal) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	c.t = t
	return c
}

var errNoTerminal = errors.New("needs a pseudo-terminal")

// newConsole starts a command in a pseudo-terminal of its own.
func newConsole(cmd *exec.Cmd) (*console, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoTerminal, err)
	}
	c := &console{tty: master, changed: make(chan struct{}, 1), ended: make(chan struct{}), cmd: cmd}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		c.close()
		return nil, err
	}
	defer slave.Close() //nolint:errcheck // the command has it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		c.close()
		return nil, err
	}
	go c.listen()
	return c, nil
}

func (c *console) close() { _ = c.tty.Close() }

// shown returns all that the terminal has shown.
func (c *console) shown() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.String()
}

func (c *console) listen() {
	buf := make([]byte, 4096)
	for {
		n, err := c.tty.Read(buf)
		c.mu.Lock()
		c.output.Write(buf[:n])
		c.mu.Unlock()
		select {
		case c.changed <- struct{}{}:
		default:
		}
		if err != nil {
			close(c.ended)
			return
		}
	}
}

// drain waits until all that the command wrote has been read.
func (c *console) drain() { <-c.ended }

// expect waits until the terminal has shown a text, after what it waited for
// before.
func (c *console) expect(text string) {
	c.t.Helper()
	timeout := time.After(40 * time.Second)
	for {
		shown := c.shown()
		if i := strings.Index(shown[c.from:], text); i >= 0 {
			c.from += i + len(text)
			return
		}
		select {
		case <-c.changed:
		case <-timeout:
			c.t.Fatalf("%q was not shown; the terminal shows\n%s", text, shown)
		}
	}
}

func (c *console) press(keys string) {
	if _, err := io.WriteString(c.tty, keys); err != nil {
		panic(err) // the terminal is the test's own
	}
}

const slowFlow = `
weir: 1
name: slow
context: {model: script/script.yaml}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
  again: {type: decision, in: {said: "{{ run.inputs.message }}"}, with: {expr: inputs.said == 'slow'}}
  pause: {type: wait, after: [answer, again.true], join: all, with: {for: 1h}}
`

// TestChatInTerminal types what a person would, Ctrl-C too.
func TestChatInTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"slow.yaml": slowFlow, "script.yaml": "answer: [First., Second., Third.]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := consoleWith(t, dir, "chat", "slow.yaml")
	c.expect("a new session")
	c.expect("> ")
	c.press("Hel")
	c.press("lo.\r")
	c.expect("First.")
	c.expect("> ")
	c.press("slow\r")
	c.expect("Second.")
	c.press("\x03")
	c.expect("cancelling the round")
	c.expect("the round was cancelled")
	c.expect("> ")
	c.press("two\\\r")
	c.expect("… ")
	c.press("lines\r")
	c.expect("Third.")
	c.expect("> ")
	c.press("\x1b[200~pasted\rtext\x1b[201~\r")
	c.expect("First.")
	c.expect("> ")
	c.press("/history 2\r")
	c.expect("pasted")
	c.expect("text")
	c.expect("> ")
	c.press("\x03")
	c.expect("Ctrl-C again to quit")
	c.expect("> ")
	c.press("\x03")
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, c.output.String())
	}
	again := consoleWith(t, dir, "chat", "slow.yaml")
	again.expect("4 rounds, 8 messages so far")
	again.expect("Third.")
	again.expect("> ")
	again.press("/quit\r")
	if err := again.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
