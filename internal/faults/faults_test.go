package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/faults"
)

const root = "../.."

var (
	apply = flag.Bool("faults", false, "apply the faults and run the tests that must notice them; takes about a minute a fault")
	only  = flag.String("faults.only", "", "apply only the faults whose names match this expression")
)

// broken returns the file of a fault with the fault in it.
func broken(t *testing.T, f faults.Fault) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(root, f.File))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), f.Old); n != 1 {
		t.Fatalf("%q occurs %d times in %s: change the fault with the code, so that it still breaks the promise", f.Old, n, f.File)
	}
	return strings.Replace(string(src), f.Old, f.New, 1)
}

func TestEveryFaultCanBeApplied(t *testing.T) {
	t.Parallel()
	list := faults.List()
	if len(list) < 30 {
		t.Errorf("there are %d faults, and should be 30", len(list))
	}
	seen := map[string]bool{}
	for _, f := range list {
		if seen[f.Name] || f.Old == f.New || f.Package == "" {
			t.Errorf("%s: the name is not unique, or the fault changes or tests nothing", f.Name)
		}
		seen[f.Name] = true
		broken(t, f)
	}
}

// TestEveryFaultIsDetected takes long and runs as a campaign; see `make faults`.
func TestEveryFaultIsDetected(t *testing.T) {
	t.Parallel()
	if !*apply {
		t.Skip("a campaign: run it with `make faults`")
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	survived, applied := 0, 0
	for _, f := range faults.List() {
		if !match.MatchString(f.Name) {
			continue
		}
		applied++
		output, err := testsWith(t.Context(), t, f)
		exit := &exec.ExitError{}
		switch {
		case err == nil:
			survived++
			t.Errorf("survived: %s (%s)", f.Name, f.File)
		case !errors.As(err, &exit):
			t.Fatalf("%s: %v", f.Name, err)
		case strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]"):
			t.Errorf("does not build: %s (%s)\n%s", f.Name, f.File, output)
		default:
			t.Logf("noticed: %s", f.Name)
		}
	}
	t.Logf("%d faults applied, %d survived", applied, survived)
}

// testsWith runs the tests of a fault with the fault in the build.
func testsWith(ctx context.Context, t *testing.T, f faults.Fault) (string, error) {
	t.Helper()
	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, []byte(broken(t, f)), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join(root, f.File))
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"test", "-short", "-vet=off", "-failfast", "-timeout=10m", "-overlay=" + overlay, "-run=" + f.Run}, strings.Fields(f.Package)...)
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = root
	output, err := c.CombinedOutput()
	return string(output), err
}
