package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/node/builtin/safehttp"
	memstore "github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	httptool "github.com/weir-run/weir/tool/http"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// Toolbox holds the configured tools that models may call: HTTP requests, flows, long-term
// memory, and the tools of MCP servers. A server is started when a tool of it is needed.
type Toolbox struct {
	declared []*tool.Tool // HTTP requests
	flows    []config.FlowTool
	servers  []*ToolServer // by name
	memory   config.Memory
	// folders are those that the flows which a flow uses may be in, besides its own.
	folders []string
}

// NewToolbox prepares the tools of the configuration. It starts and calls nothing. Call
// Close at the end.
func NewToolbox(cfg *config.Config) (*Toolbox, error) {
	client, err := HTTPClient(cfg)
	if err != nil {
		return nil, err
	}
	invalid := func(kind string, err error) error {
		return usagef("configuration (%s): tools.%s: %w", strings.Join(cfg.Files, ", "), kind, err)
	}
	b := &Toolbox{flows: cfg.Tools.Flows, folders: cfg.Flows.Folders, memory: cfg.Tools.Memory}
	for i := range cfg.Tools.HTTP {
		t, err := declaredTool(&cfg.Tools.HTTP[i], client, cfg)
		if err != nil {
			return nil, invalid("http", err)
		}
		b.declared = append(b.declared, t)
	}
	if _, err := b.memoryTools(memstore.New()); err != nil {
		return nil, invalid("memory", err)
	}
	pins := mcptool.NewLockFile(cfg.LockFile())
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools.MCP)) {
		s, err := newToolServer(name, cfg, pins)
		if err != nil {
			return nil, invalid("mcp", err)
		}
		b.servers = append(b.servers, s)
	}
	return b, nil
}

func declaredTool(c *config.HTTPTool, client *http.Client, cfg *config.Config) (*tool.Tool, error) {
	client, err := toolClient(c.URL, client, cfg.HTTP.AllowPrivate)
	if err != nil {
		return nil, err
	}
	return httptool.New(httptool.Spec{
		Name: c.Name, Description: c.Description, Parameters: c.Parameters, Method: c.Method, URL: c.URL,
		Query: c.Query, Headers: c.Headers, Body: c.Body, Approve: tool.Approval(c.Approve), OnUnknown: tool.OnUnknown(c.OnUnknown),
		Timeout: c.Timeout, MaxBody: c.MaxBody, MaxOutput: c.MaxOutput,
	}, httptool.Options{HTTP: client, Secrets: cfg.Secret})
}

// toolClient returns the client of an HTTP tool. A private address that is written
// literally in the tool's URL is allowed: the owner of the process has written it. The
// targets of host names and redirects are checked as always.
func toolClient(address string, client *http.Client, allowPrivate []string) (*http.Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return client, nil //nolint:nilerr // the tool reports an invalid URL
	}
	if _, err := netip.ParseAddr(u.Hostname()); err != nil && u.Hostname() != "localhost" {
		return client, nil
	}
	return clientFor(address, allowPrivate)
}

// clientFor returns a client that may call the server of an address even if it is private:
// the owner of the process has configured it.
func clientFor(address string, allowPrivate []string) (*http.Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("its URL cannot be read")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return safehttp.Client(safehttp.Options{
		AllowPrivate: append(slices.Clone(allowPrivate), net.JoinHostPort(u.Hostname(), port)),
	})
}

// toolsFor returns the tools for runs of flows; a nil flow needs none. It starts the servers that
// the flows need and compares their definitions with the accepted ones; a needed tool that
// was not accepted is an error. Tools of other servers are offered as they were accepted.
func (b *Toolbox) toolsFor(ctx context.Context, flows ...*weir.Flow) ([]*tool.Tool, error) {
	return b.requiredTools(ctx, requiredToolsOf(flows...))
}

// allTools is toolsFor for a process that executes any flow.
func (b *Toolbox) allTools(ctx context.Context) ([]*tool.Tool, error) {
	return b.requiredTools(ctx, requiredTools{all: true})
}

func (b *Toolbox) requiredTools(ctx context.Context, needs requiredTools) ([]*tool.Tool, error) {
	tools := slices.Clone(b.declared)
	for _, s := range b.servers {
		if !needs.server(s.Name) {
			tools = append(tools, s.accepted()...)
			continue
		}
		more, err := s.checkedTools(ctx, needs)
		if err != nil {
			return nil, err
		}
		tools = append(tools, more...)
	}
	return tools, nil
}

// Server returns the MCP server with a name, nil if none is configured, and the names of
// all servers.
func (b *Toolbox) Server(name string) (*ToolServer, []string) {
	var found *ToolServer
	names := []string{}
	for _, s := range b.servers {
		names = append(names, s.Name)
		if s.Name == name {
			found = s
		}
	}
	return found, names
}

// Close stops all servers that were started.
func (b *Toolbox) Close() error {
	errs := make(chan error, len(b.servers))
	for _, s := range b.servers {
		go func() { errs <- s.client.Close() }()
	}
	var all error
	for range b.servers {
		all = errors.Join(all, <-errs)
	}
	return all
}
