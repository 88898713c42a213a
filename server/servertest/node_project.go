package servertest

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NodeProject copies a folder with a package.json to a temporary one, installs what its lock file
// names, which builds it (script `prepare`), and returns the copy. See Node for where it is skipped.
func NodeProject(t *testing.T, project string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("installs packages of npm")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		missing(t, "npm is not installed: the project cannot be built")
	}
	dir := t.TempDir()
	if err := copySources(dir, project); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), installTime)
	defer cancel()
	// Scripts are run apart, so that a project that does not build is not taken for a registry that does not answer.
	c := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		missing(t, "npm could not install the packages of "+project+": "+err.Error()+"\n"+string(out))
	}
	NodeRun(t, dir, nil, "npm", "run", "--silent", "prepare")
	return dir
}

// NodeRun runs a command in a folder and returns what it prints. A command that fails fails the test.
func NodeRun(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), installTime)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return string(out)
}

// copySources copies a folder without what is built and installed.
func copySources(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "dist"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case name == filepath.Join("src", "schema.ts"):
			return nil // generated from the description
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o600)
	})
}
