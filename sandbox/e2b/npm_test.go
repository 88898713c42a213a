package e2b_test

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/sandbox/e2b/e2btest"
)

var npm = flag.Bool("e2b.npm", false, "drive the public npm packages against the server of the tests; needs node and npm")

// Our client is tested against our server, which would prove little if both
// misread the protocol alike. The clients that E2B publishes are the witness.
func TestThePublicClientsTakeTheServerForTheCloud(t *testing.T) {
	if !*npm {
		t.Skip("needs -e2b.npm, which downloads the public packages: make clouds")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs ", program, ": ", err)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "check.mjs"} {
		data, err := os.ReadFile(filepath.Join("testdata", "npm", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "install", "--loglevel=error", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	s := e2btest.Serve(t)
	busy := e2btest.Refusal{Status: http.StatusTooManyRequests, RetryAfter: "0"}
	s.Refuse(busy)
	s.OnDelete(func(string) {
		if s.Deleted() == 2 { // the last one but the first
			s.Refuse(busy)
		}
	})
	check := exec.CommandContext(t.Context(), "node", "check.mjs")
	check.Dir = dir
	check.Env = append(os.Environ(), "E2B_API_KEY="+e2btest.Key, "E2B_API_URL="+s.URL, "E2B_SANDBOX_URL="+s.URL)
	out, err := check.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), "ok "); n != 13 {
		t.Errorf("%d checks held, want 13", n)
	}
	if left := s.Running(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
