package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestASignalEndsTheProcessWhileItReadsAPipe covers each kind of file that a command reads as a whole and that may be a
// pipe. No process writes to the pipe, and the first signal must be enough.
func TestASignalEndsTheProcessWhileItReadsAPipe(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"value of an input": {"run", "flow.yaml", "-i", "message=@pipe"},
		"inputs":            {"run", "flow.yaml", "--inputs", "pipe"},
		"import":            {"import", "pipe"},
		"configuration":     {"doctor", "--offline", "--config", "pipe"},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(name+", "+sig.String(), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				writeFile(t, dir, "flow.yaml", talkFlow)
				writeFile(t, dir, "script.yaml", "say: [Hello.]\n")
				pipe := filepath.Join(dir, "pipe")
				if err := syscall.Mkfifo(pipe, 0o600); err != nil {
					t.Fatal(err)
				}
				checkSignalAtPipe(t, dir, pipe, sig, args)
			})
		}
	}
}

// checkSignalAtPipe runs a command in a folder, sends it a signal once it has opened a pipe, and
// checks that it ends with that signal.
func checkSignalAtPipe(t *testing.T, dir, pipe string, sig syscall.Signal, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Args = append([]string{"weir"}, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns once the command has opened the pipe
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // nothing was written
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got, want := cmd.ProcessState.ExitCode(), 128+int(sig); got != want {
		t.Errorf("exit code %d, want %d; stderr: %s", got, want, complaint.String())
	}
}
