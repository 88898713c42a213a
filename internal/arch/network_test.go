package arch_test

import (
	"go/ast"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/arch"
)

// networkClients are the files that make what can open a connection, each with the reason why no client, model or flow can have it
// reach an address that is not public.
func networkClients() map[string]string {
	return map[string]string{
		"node/builtin/safehttp/safehttp.go": "it is the client that refuses such addresses: of httpRequest, HTTP tools, MCP servers and webhooks",
		"sandbox/e2b/e2b.go":                "its address is in the configuration; it follows no redirect",
		"llm/vendorapi/client.go":           "its address is in the configuration; it follows no redirect",
		"server/oidc/oidc.go":               "its address is in the configuration, and what the issuer names has the same scheme; it follows no redirect",
		"otel/exporter.go":                  "its address is in the configuration; it follows no redirect",
		"tool/mcp/transport.go":             "it is given the client of safehttp",
		"server/client/client.go":           "a client of programs, which no server uses",
	}
}

// TestClientsOfTheNetworkAreListed finds each place of the product that makes an HTTP client, a transport or a dialer, or uses those of the library.
func TestClientsOfTheNetworkAreListed(t *testing.T) {
	t.Parallel()
	tree, err := arch.Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	makes := []string{
		"http.Client", "http.Transport", "http.DefaultClient", "http.DefaultTransport", "http.Get", "http.Head", "http.Post", "http.PostForm",
		"net.Dialer", "net.Dial", "net.DialTimeout", "net.DialTCP", "net.DialUDP", "net.DialIP", "tls.Dial", "tls.Dialer", "tls.DialWithDialer",
	}
	found := map[string]bool{}
	for _, f := range tree.Files {
		if f.Test || strings.HasPrefix(f.Path, "bench/") || strings.HasPrefix(f.Path, "llm/llmtest/") || strings.HasPrefix(f.Path, "internal/") {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.StarExpr: // a pointer to a client that somebody has made
				return false
			case *ast.SelectorExpr:
				if id, ok := x.X.(*ast.Ident); ok && slices.Contains(makes, id.Name+"."+x.Sel.Name) {
					found[f.Path] = true
				}
			}
			return true
		})
	}
	listed := networkClients()
	for path := range found {
		if listed[path] == "" {
			t.Errorf("%s opens connections: use node/builtin/safehttp, or list it here with the reason why nobody but the operator names its address", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(listed)) {
		if !found[path] {
			t.Errorf("%s opens no connection", path)
		}
	}
}
