package runner

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// Grants lists what the effects of a run may use. "*" in a list allows all of its kind.
// Files of the machine are never granted.
type Grants struct {
	// Providers are names of model providers.
	Providers []string `json:"providers"`
	// Tools are names of tools, and Servers those of MCP servers, all of whose tools are
	// granted.
	Tools   []string `json:"tools"`
	Servers []string `json:"servers"`
	// Executors are names of executors, or languages for the default executor.
	Executors []string `json:"executors"`
	// Hosts are host names without a port, for every port, or with one.
	Hosts []string `json:"hosts"`
	// Secrets are names of secrets.
	Secrets []string `json:"secrets"`
	// Flows are names of other flows that the flow may run.
	Flows []string `json:"flows"`
}

// Allows reports whether the grants cover a use. Nil grants cover everything.
func (g *Grants) Allows(u node.Use) bool {
	if g == nil || u.Kind == "" {
		return true
	}
	has := func(list []string, name string) bool {
		return slices.Contains(list, name) || slices.Contains(list, "*")
	}
	switch u.Kind {
	case node.UseProvider:
		return has(g.Providers, u.Name)
	case node.UseExecutor:
		return has(g.Executors, u.Name)
	case node.UseSecret:
		return has(g.Secrets, u.Name)
	case node.UseTool:
		server, ok := strings.CutPrefix(u.Name, "mcp:")
		server, _, _ = strings.Cut(server, "/")
		return has(g.Tools, u.Name) || ok && has(g.Servers, server)
	case node.UseHost:
		name := strings.ToLower(u.Name)
		host, _, err := net.SplitHostPort(name)
		return has(g.Hosts, name) || err == nil && has(g.Hosts, host)
	case node.UseFile:
	}
	return false
}

// NotGranted returns the error of a use that the grants do not cover.
func NotGranted(u node.Use) *engine.Error {
	return &engine.Error{
		Code: engine.CodeNotGranted, Permanent: true,
		Message: fmt.Sprintf("the flow may not use the %s %q: it was put through the API and this was not granted to it", u.Kind, u.Name),
	}
}

// grants returns what the run of the attempt may use; nil is everything. If that cannot be
// found out, nothing is allowed.
func (a *attempt) grants() *Grants {
	if a.m.services.Grants == nil {
		return nil
	}
	g, err := a.m.services.Grants(context.WithoutCancel(a.ctx), a.m.program.Fingerprint)
	if err != nil {
		return &Grants{}
	}
	return g
}
