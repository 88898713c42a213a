package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/store/sqlite"
)

// deployment is the command line and the environment of a file in the folder deploy.
type deployment struct {
	args []string
	env  map[string]string
}

// readDeployment reads the unit or a container file. The binary that starts must be the one that the
// file installs or the documentation does.
func readDeployment(t *testing.T, name string) deployment {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	text, d := string(b), deployment{env: map[string]string{}}
	one := func(pattern string) string {
		m := regexp.MustCompile("(?m)"+pattern).FindAllStringSubmatch(text, -1)
		if len(m) != 1 {
			t.Fatalf("%s: %d matches of %s", name, len(m), pattern)
		}
		return m[0][1]
	}
	variables := regexp.MustCompile(`(?m)^Environment=(.*)$`)
	if strings.HasPrefix(name, "Containerfile") {
		variables = regexp.MustCompile(`(?m)^ENV (.*)$`)
		if err := json.Unmarshal([]byte(one(`^ENTRYPOINT (.*)$`)), &d.args); err != nil {
			t.Fatal(err)
		}
		var rest []string
		if err := json.Unmarshal([]byte(one(`^CMD (.*)$`)), &rest); err != nil {
			t.Fatal(err)
		}
		d.args = append(d.args, rest...)
		module, err := os.ReadFile("../../go.mod")
		if err != nil {
			t.Fatal(err)
		}
		if want := "go " + one(`^FROM golang:([\d.]+) AS build$`) + "."; !strings.Contains(string(module), "\n"+want) {
			t.Errorf("%s builds with another version of Go than go.mod requires", name)
		}
		if path := one(`go build -trimpath -o \S+ \./(\S+)$`); path != "cmd/weir" {
			t.Errorf("%s builds %s", name, path)
		}
		if target := one(`^COPY --from=build /out/weir (\S+)$`); target != d.args[0] {
			t.Errorf("%s installs %s and starts %s", name, target, d.args[0])
		}
	} else {
		d.args = strings.Fields(one(`^ExecStart=(.*)$`))
	}
	if d.args[0] != "/usr/local/bin/weir" {
		t.Errorf("%s starts %s", name, d.args[0])
	}
	d.readEnvironment(variables.FindAllStringSubmatch(text, -1))
	return d
}

// readEnvironment reads lines of NAME=VALUE pairs.
func (d *deployment) readEnvironment(lines [][]string) {
	for _, m := range lines {
		for pair := range strings.FieldsSeq(m[1]) {
			key, value, _ := strings.Cut(pair, "=")
			d.env[key] = value
		}
	}
}

// TestDeploymentFilesStartAServer carries out the command line of the unit and of each container file, with
// their environment. The folders are others and the port is free; nothing else differs.
func TestDeploymentFilesStartAServer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"weir.service", "Containerfile", "Containerfile.python"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, d := t.TempDir(), readDeployment(t, name)
			addr := slices.Index(d.args, "--addr") + 1
			if addr == 0 || d.args[len(d.args)-1] != "/etc/weir/flows" || d.env["XDG_CONFIG_HOME"] != "/etc" || d.env["WEIR_DB"] == "" {
				t.Fatalf("%v", d)
			}
			host, _, _ := strings.Cut(d.args[addr], ":")
			d.args[addr], d.args[len(d.args)-1] = host+":0", dir
			d.env["WEIR_DB"] = filepath.Join(dir, "weir.db")
			if err := os.WriteFile(filepath.Join(dir, "f.yaml"), []byte("weir: 1\nname: f\nnodes:\n  a: {type: manualInput, with: {text: x}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			start := func(ctx context.Context, errs io.Writer) int {
				p := &cli{terminal: terminal{in: strings.NewReader(""), out: io.Discard, err: errs}, env: func(k string) (string, bool) { v, ok := d.env[k]; return v, ok }}
				return p.command(ctx, d.args[1:])
			}
			var refused strings.Builder
			if code := start(t.Context(), &refused); code != 2 || !strings.Contains(refused.String(), "requires tokens") {
				t.Fatalf("without a token: exit %d, %s", code, refused.String())
			}
			makeToken(t, d.env["WEIR_DB"])
			answers(t, start, "/readyz", "", http.StatusOK)
		})
	}
}

func makeToken(t *testing.T, path string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := server.NewToken(t.Context(), s, "ada", "test", []string{"read"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// answers starts a server, sends one request in which a proxy may name a user, compares the status, and stops the server.
func answers(t *testing.T, start func(ctx context.Context, errs io.Writer) int, path, user string, want int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- start(ctx, write)
		_ = write.Close() // never fails
	}()
	var said strings.Builder
	serving := regexp.MustCompile(`serving 1 flow on http://\S*:(\d+)[/\n]`)
	for piece := make([]byte, 1000); ; {
		n, err := read.Read(piece)
		said.Write(piece[:n])
		if m := serving.FindStringSubmatch(said.String()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, read) }() // what the command prints next must not block it
			q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+m[1]+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if user != "" {
				q.Header.Set("X-Forwarded-User", user)
			}
			a, err := (&http.Client{}).Do(q)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			if a.StatusCode != want {
				t.Errorf("%s: %s, not %d", path, a.Status, want)
			}
			break
		}
		if err != nil {
			t.Errorf("it ended: %v, %s", err, said.String())
			break
		}
	}
	stop()
	_, _ = io.Copy(io.Discard, read) // until the command has ended
	if code := <-ended; code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestTheFlagsOfProxiesReachTheServer starts servers with each combination of the flags.
func TestTheFlagsOfProxiesReachTheServer(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		flags []string
		path  string
		user  string
		want  int // 0: the command line is refused
	}{
		{[]string{"--user-header", "X-Forwarded-User"}, "", "", 0},
		{[]string{"--trusted-proxy", "0.0.0.0/0", "--user-header", "X-Forwarded-User"}, "", "", 0},
		{[]string{"--trusted-proxy", "proxy"}, "", "", 0},
		{[]string{"--trusted-proxy", "127.0.0.1", "--user-header", "X-Forwarded-User"}, "/v1/me", "ada", 200},
		{[]string{"--trusted-proxy", "127.0.0.1", "--user-header", "X-Forwarded-User"}, "/v1/me", "", 401},
		{[]string{"--trusted-proxy", "10.0.0.0/8", "--user-header", "X-Forwarded-User"}, "/v1/me", "ada", 401},
		{[]string{"--base-path", "/weir", "--trusted-proxy", "127.0.0.0/8", "--user-header", "X-Forwarded-User"}, "/weir/v1/me", "ada", 200},
		{[]string{"--base-path", "/weir"}, "/v1/me", "", 404},
	} {
		t.Run(strings.Join(x.flags, " ")+x.path+x.user, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f.yaml"), []byte("weir: 1\nname: f\nnodes:\n  a: {type: manualInput, with: {text: x}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			start := func(ctx context.Context, errs io.Writer) int {
				p := &cli{terminal: terminal{in: strings.NewReader(""), out: io.Discard, err: errs}, env: func(string) (string, bool) { return "", false }}
				return p.command(ctx, append([]string{"--db", filepath.Join(dir, "weir.db"), "serve", "--addr", "127.0.0.1:0", dir}, x.flags...))
			}
			if x.want == 0 {
				if code := start(t.Context(), io.Discard); code != 2 {
					t.Errorf("exit %d", code)
				}
				return
			}
			answers(t, start, x.path, x.user, x.want)
		})
	}
}
