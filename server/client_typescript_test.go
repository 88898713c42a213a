package server_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// TestTypeScriptClient builds the client from the description in its folder, checks that mistakes
// do not compile, and drives a server with it.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	dir := servertest.NodeProject(t, filepath.Join("..", "clients", "typescript"))
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	token := p.anyone("ada").Token
	out := servertest.NodeRun(t, dir, []string{"WEIR_URL=" + p.url, "WEIR_TOKEN=" + token}, "npm", "test", "--silent")
	if !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}
