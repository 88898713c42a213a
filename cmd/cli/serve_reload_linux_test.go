package cli

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSIGHUPReadsTheConfigurationAgain sends SIGHUP to a server, with a configuration that it can take and one that it cannot.
func TestSIGHUPReadsTheConfigurationAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("f.yaml", "weir: 1\nname: f\nnodes: {a: {type: manualInput, with: {text: x}}}\n")
	write("key", "a key")
	write("config.yaml", "parallel: 2\n")
	c := exec.CommandContext(t.Context(), "weir", "--db", filepath.Join(dir, "weir.db"), "--config", filepath.Join(dir, "config.yaml"), "serve", "--addr", "127.0.0.1:0", dir)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=" + os.Getenv("GORACE")}
	errs, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(errs)
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the server did not print %q", text)
	}
	until("requests need no token") // it is printed when signals are taken
	for text, want := range map[string]string{
		"parallel: 2\nsecrets: {S: {file: key}}\n": "changed: secrets.S",
		"parallel: 3\n": "these settings cannot change while the process runs: parallel",
		"parallel: {":   "not YAML",
	} {
		write("config.yaml", text)
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		until(want)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // until it ends
	}
	_ = c.Wait() // a signal ended it
}
