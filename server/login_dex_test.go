package server_test

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// startDex runs the program of internal/dextest, and returns the address of its issuer. Its one person is in the group authors.
func startDex(t *testing.T) string {
	t.Helper()
	program := os.Getenv("WEIR_DEX")
	if program == "" {
		t.Skip("WEIR_DEX does not name the program of internal/dextest: `.ci/run oidc` builds it and runs this test")
	}
	cmd := exec.CommandContext(t.Context(), program, servertest.IssuerClient, servertest.IssuerSecret, "http://localhost/login/callback")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends then
		_ = cmd.Wait() // with the status that the context may have caused
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// TestPeopleSignInAtDex has a person sign in at an issuer that others wrote, by subject, by address and by group.
func TestPeopleSignInAtDex(t *testing.T) {
	t.Parallel()
	issuer := startDex(t)
	for what, x := range map[string]struct {
		change func(o *server.OIDC)
		want   string
	}{
		"by address": {func(o *server.OIDC) { o.User = "email" }, "kilgore@kilgore.trout read,start,answer login"},
		"by subject": {nil, "Cg0wLTM4NS0yODA4OS0wEgRtb2Nr read,start,answer login"},
		"by group": {func(o *server.OIDC) {
			o.User, o.Role, o.Roles = "email", "", map[string]server.Role{"authors": server.OwnerRole}
		}, "kilgore@kilgore.trout read,start,answer,admin all login"},
		"without a group that may": {func(o *server.OIDC) { o.Role, o.Roles = "", map[string]server.Role{"editors": server.OwnerRole} }, ""},
		"without the secret":       {func(o *server.OIDC) { o.Secret = nil }, ""},
		"without the scope":        {func(o *server.OIDC) { o.User, o.Scopes = "email", []string{} }, ""},
	} {
		o := loginOptions(&servertest.Issuer{URL: issuer}, x.change)
		p := openProcess(t, t.TempDir(), o)
		b := p.browser()
		a := b.signIn()
		got := ""
		if a.status == http.StatusSeeOther {
			got = b.me()
		}
		if got != x.want || x.want == "" && a.status != http.StatusForbidden {
			t.Errorf("%s: %d %q %s", what, a.status, got, a.body)
		}
		if got == "" {
			continue
		}
		if a := b.send(http.MethodPost, "/login/end", "", nil); a.status != http.StatusOK || b.me() != "Unauthorized" {
			t.Errorf("%s: signing out: %d %s", what, a.status, a.body)
		}
	}
}
