package servertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// installTime bounds the installation of packages, and clientTime a client's run.
const (
	installTime = 3 * time.Minute
	clientTime  = 2 * time.Minute
)

// Node runs a script with Node.js and public packages of npm, such as "openai@7.57.0", and
// returns what it prints. A script that fails fails the test. Packages are installed once on
// a machine. The test is skipped where Node.js or the registry cannot be had, unless CI is
// set, and with -short.
func Node(t *testing.T, script string, env []string, packages ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("installs packages of npm")
	}
	dir := install(t, packages)
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	// Modules are found from the folder of the script.
	at := filepath.Join(dir, strconv.Itoa(os.Getpid())+"-"+filepath.Base(script))
	if err := os.WriteFile(at, text, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(at) //nolint:errcheck // a leftover in a cache is harmless
	out, err := run(t, dir, env, at)
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(script), err, out)
	}
	return out
}

// NodeCommand runs a file of an installed package, such as "node_modules/x/cli.js", with
// arguments, and returns what it prints and how it ended. See Node.
func NodeCommand(t *testing.T, file string, args, packages []string) (string, error) {
	t.Helper()
	if testing.Short() {
		t.Skip("installs packages of npm")
	}
	dir := install(t, packages)
	return run(t, dir, nil, append([]string{filepath.Join(dir, file)}, args...)...)
}

// run runs a script with the Node.js among the packages of a folder, else that of the machine.
func run(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientTime)
	defer cancel()
	node := filepath.Join(dir, "node_modules", ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	c := exec.CommandContext(ctx, node, args...)
	c.Dir, c.Env = t.TempDir(), append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

// install installs packages into a folder of the user's cache and returns it. The folder is
// renamed into place when it is complete, so processes that install the same packages at the
// same time do not disturb each other.
func install(t *testing.T, packages []string) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		missing(t, "npm is not installed: the public client cannot be run")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	all := filepath.Join(cache, "weir-test-packages")
	dir := filepath.Join(all, strings.NewReplacer("/", "-", "@", "-").Replace(strings.Join(packages, "_")))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(all, 0o700); err != nil {
		t.Fatal(err)
	}
	partial, err := os.MkdirTemp(all, "partial-") //nolint:usetesting // it is renamed within one file system
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(partial) //nolint:errcheck // a leftover in a cache is harmless
	ctx, cancel := context.WithTimeout(t.Context(), installTime)
	defer cancel()
	c := exec.CommandContext(ctx, "npm", append([]string{"install", "--prefix", partial, "--no-audit", "--no-fund", "--no-save", "--loglevel=error"}, packages...)...)
	if out, err := c.CombinedOutput(); err != nil {
		missing(t, "npm could not install "+strings.Join(packages, " ")+": "+err.Error()+"\n"+string(out))
	}
	if err := os.Rename(partial, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // another process has renamed its own
			t.Fatal(err)
		}
	}
	return dir
}

// missing skips a test, or fails it where CI is set.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" && os.Getenv("WEIR_NO_NPM") == "" { // the script of CI found that there is none
		t.Fatal(why)
	}
	t.Skip(why)
}
