package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeSignsPeopleInAtTheConfiguredIssuer starts the command with settings of server.oidc. The path to which an issuer sends browsers
// exists only where people sign in; the issuer itself is not asked for that.
func TestServeSignsPeopleInAtTheConfiguredIssuer(t *testing.T) {
	t.Parallel()
	const issuer = "issuer: 'http://127.0.0.1:9', clientID: weir"
	for what, x := range map[string]struct {
		oidc, path string
		flags      []string
		want       int // the status; 0 if the command must not start
	}{
		"an issuer":                   {issuer + ", role: viewer, clientSecret: {file: secret}", "/login/callback", []string{"--public-url", "http://localhost"}, 403},
		"below a path":                {issuer + ", roles: {staff: operator}", "/weir/login/callback", []string{"--public-url", "http://localhost", "--base-path", "/weir"}, 403},
		"the API without a token":     {issuer + ", role: owner", "/v1/me", []string{"--public-url", "http://localhost"}, 401},
		"no issuer":                   {"", "/login/callback", []string{"--public-url", "http://localhost"}, 404},
		"no public address":           {issuer + ", role: viewer", "", nil, 0},
		"a public address in clear":   {issuer + ", role: viewer", "", []string{"--public-url", "http://weir.example.org"}, 0},
		"nobody may sign in":          {issuer, "", []string{"--public-url", "http://localhost"}, 0},
		"a secret that is not there":  {issuer + ", role: viewer, clientSecret: {file: none}", "", []string{"--public-url", "http://localhost"}, 0},
		"signing out without a proxy": {"", "", []string{"--sign-out-url", "/oauth2/sign_out"}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := map[string]string{"f.yaml": "weir: 1\nname: f\nnodes:\n  a: {type: manualInput, with: {text: x}}\n", "secret": "s3cret\n", "config.yaml": "parallel: 2\n"}
			if x.oidc != "" {
				files["config.yaml"] = "server: {oidc: {" + x.oidc + "}}\n"
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := func(name string) (string, bool) {
				return map[string]string{"WEIR_CONFIG": filepath.Join(dir, "config.yaml")}[name], name == "WEIR_CONFIG"
			}
			start := func(ctx context.Context, errs io.Writer) int {
				p := &cli{terminal: terminal{in: strings.NewReader(""), out: io.Discard, err: errs}, env: env}
				return p.command(ctx, append([]string{"--db", filepath.Join(dir, "weir.db"), "serve", "--addr", "127.0.0.1:0", filepath.Join(dir, "f.yaml")}, x.flags...))
			}
			if x.want == 0 {
				if code := start(t.Context(), io.Discard); code == 0 {
					t.Error("the command has started")
				}
				return
			}
			answers(t, start, x.path, "", x.want)
		})
	}
}
