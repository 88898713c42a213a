package main

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
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node/builtin/safehttp"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	httptool "github.com/weir-run/weir/tool/http"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// toolbox is what models may call, as configured. Servers are started when
// something of theirs is needed; close ends them.
type toolbox struct {
	p        *cli
	declared []*tool.Tool // HTTP requests
	flows    []config.FlowTool
	servers  []*toolServer // by name
	memory   config.Memory
}

// toolServer is one MCP server of the configuration.
type toolServer struct {
	name   string
	config config.MCPServer
	pins   *mcptool.LockFile
	client *mcptool.Client
}

// toolbox makes the tools of the configuration. It starts and calls nothing.
func (p *cli) toolbox(cfg *config.Config, client *http.Client) (*toolbox, error) {
	b := &toolbox{p: p, flows: cfg.Tools.Flows, memory: cfg.Tools.Memory}
	for i := range cfg.Tools.HTTP {
		c, err := toolClient(cfg.Tools.HTTP[i].URL, client, cfg.HTTP.AllowPrivate)
		if err != nil {
			return nil, usagef("configuration (%s): tools.http: %w", strings.Join(cfg.Files, ", "), err)
		}
		t, err := declaredTool(&cfg.Tools.HTTP[i], c, cfg.Secret)
		if err != nil {
			return nil, usagef("configuration (%s): tools.http: %w", strings.Join(cfg.Files, ", "), err)
		}
		b.declared = append(b.declared, t)
	}
	if _, err := b.memoryTools(memory.New()); err != nil {
		return nil, usagef("configuration (%s): tools.memory: %w", strings.Join(cfg.Files, ", "), err)
	}
	pins := mcptool.NewLockFile(p.lockFile(cfg))
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools.MCP)) {
		s, err := newToolServer(name, cfg, pins)
		if err != nil {
			return nil, usagef("configuration (%s): tools.mcp: %w", strings.Join(cfg.Files, ", "), err)
		}
		b.servers = append(b.servers, s)
	}
	return b, nil
}

func declaredTool(c *config.HTTPTool, client *http.Client, secret func(string) (string, bool)) (*tool.Tool, error) {
	return httptool.New(httptool.Spec{
		Name: c.Name, Description: c.Description, Parameters: c.Parameters, Method: c.Method, URL: c.URL,
		Query: c.Query, Headers: c.Headers, Body: c.Body, Approve: tool.Approval(c.Approve),
		Timeout: c.Timeout, MaxBody: c.MaxBody, MaxOutput: c.MaxOutput,
	}, httptool.Options{HTTP: client, Secrets: secret})
}

func newToolServer(name string, cfg *config.Config, pins *mcptool.LockFile) (*toolServer, error) {
	c := cfg.Tools.MCP[name]
	s := &toolServer{name: name, config: c, pins: pins}
	server := mcptool.Server{Name: name, URL: c.URL, Tools: c.Tools, Timeout: c.Timeout}
	if c.Command != "" {
		server.Command = append([]string{c.Command}, c.Args...)
	}
	if c.Approve != "" {
		server.Approve = map[string]tool.Approval{"*": tool.Approval(c.Approve)}
	}
	keys := make(map[string]config.Text)
	server.Env, server.Headers = references("env", c.Env, keys), references("header", c.Headers, keys)
	o := mcptool.Options{Pins: pins, Version: thisBuild().Version, Secrets: func(name string) (string, bool) {
		if t, ok := keys[name]; ok {
			v, err := t.Value()
			return v, err == nil
		}
		return cfg.Secret(name)
	}}
	if c.URL != "" {
		var err error
		if o.HTTP, err = clientFor(c.URL, cfg.HTTP.AllowPrivate); err != nil {
			return nil, err
		}
	}
	var err error
	s.client, err = mcptool.NewClient(server, o)
	return s, err
}

// references are texts with secrets in the place of keys, which a client reads
// when it connects and takes out of what it shows.
func references(kind string, texts map[string]config.Text, keys map[string]config.Text) map[string]string {
	out := make(map[string]string, len(texts))
	for name, t := range texts {
		out[name] = t.Plain
		if t.Set() {
			secret := kind + ":" + strings.NewReplacer(".", "_", "'", "_").Replace(name) // no name that a file could give
			keys[secret], out[name] = t, "{{ secrets."+secret+" }}"
		}
	}
	return out
}

// toolClient is the client of an HTTP tool. An address that its URL names literally
// may be private: whoever runs this process has written it. Where a redirect or a
// host name leads is checked as ever.
func toolClient(address string, client *http.Client, allowPrivate []string) (*http.Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return client, nil //nolint:nilerr // the tool reports an address that is none
	}
	if _, err := netip.ParseAddr(u.Hostname()); err != nil && u.Hostname() != "localhost" {
		return client, nil
	}
	return clientFor(address, allowPrivate)
}

// clientFor is a client that may call the server of an address, wherever it is:
// whoever runs this process has named it.
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

// toolsFor returns the tools for a run of f, nil for none. The servers that the
// flow needs are started, and what they define is held to what was accepted; a
// tool that is not is an error. Those of other servers are offered as they
// were accepted.
func (b *toolbox) toolsFor(ctx context.Context, f *weir.Flow) ([]*tool.Tool, error) {
	tools := slices.Clone(b.declared)
	needs := requiredToolsOf(f)
	for _, s := range b.servers {
		if !needs.server(s.name) {
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

// checkedTools connects to the server and returns its tools.
func (s *toolServer) checkedTools(ctx context.Context, needs requiredTools) ([]*tool.Tool, error) {
	tools, err := s.tools(ctx)
	refused, ok := errors.AsType[*mcptool.RefusedError](err)
	if !ok {
		return tools, err
	}
	var lines []string
	for _, r := range refused.Refusals {
		if !needs.tool(s.name, r.Tool) {
			continue
		}
		lines = append(lines, printable(r.String()))
		if acceptable(r) {
			lines = append(lines, "  look at it with `weir tools`, and accept it with: "+engine.CommandLine("tools", "accept", s.name+"/"+r.Tool))
		}
	}
	if lines == nil {
		return tools, nil
	}
	return nil, usagef("the flow needs tools that cannot be used:\n  %s", strings.Join(lines, "\n  "))
}

// tools are those that can be used, as mcptool.Client.Tools gives them.
func (s *toolServer) tools(ctx context.Context) ([]*tool.Tool, error) {
	for kind, texts := range map[string]map[string]config.Text{"env": s.config.Env, "headers": s.config.Headers} {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			if _, err := texts[name].Value(); err != nil {
				return nil, usagef("mcp server %s: %s %s: %w", s.name, kind, name, err)
			}
		}
	}
	return s.client.Tools(ctx)
}

// accepted are the tools as they were accepted. The server is started when one
// of them is called, and refuses where it has come to define it otherwise.
func (s *toolServer) accepted() []*tool.Tool {
	pins, err := s.pins.Pins(s.name)
	if err != nil { // told where the server is needed
		return nil
	}
	var tools []*tool.Tool
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		if !slices.Contains(s.config.Tools, name) && !slices.Contains(s.config.Tools, "*") {
			continue
		}
		pin := pins[name]
		t := &tool.Tool{
			Name: mcptool.ModelName(s.name, name), Alias: mcptool.FlowName(s.name, name),
			Description: pin.Description, Parameters: pin.Parameters, ReadOnly: pin.ReadOnly,
			Timeout: s.config.Timeout, Approve: tool.Approval(s.config.Approve), Origin: "mcp:" + s.name,
		}
		if t.Hash() != pin.Hash {
			continue // the file was changed by hand; the tool has to be accepted again
		}
		t.Call = func(ctx context.Context, call tool.Call) (string, error) {
			tools, err := s.tools(ctx)
			for _, now := range tools {
				if now.Alias == t.Alias {
					return now.Call(ctx, call)
				}
			}
			if err == nil {
				err = fmt.Errorf("%s is not offered", t.Alias)
			}
			return "", err
		}
		tools = append(tools, t)
	}
	return tools
}

// acceptable reports whether a person can do away with a refusal.
func acceptable(r mcptool.Refusal) bool {
	return r.Reason == mcptool.ReasonNew || r.Reason == mcptool.ReasonChanged
}

// close ends all servers that were started.
func (b *toolbox) close() error {
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
