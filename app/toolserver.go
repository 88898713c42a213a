package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// ToolServer is a configured MCP server.
type ToolServer struct {
	Name   string
	config config.MCPServer
	pins   *mcptool.LockFile
	client *mcptool.Client
}

func newToolServer(name string, cfg *config.Config, pins *mcptool.LockFile) (*ToolServer, error) {
	c := cfg.Tools.MCP[name]
	s := &ToolServer{Name: name, config: c, pins: pins}
	server := mcptool.Server{Name: name, URL: c.URL, Tools: c.Tools, Timeout: c.Timeout}
	if c.Command != "" {
		server.Command = append([]string{c.Command}, c.Args...)
	}
	server.OnUnknown = tool.OnUnknown(c.OnUnknown)
	if c.Approve != "" {
		server.Approve = map[string]tool.Approval{"*": tool.Approval(c.Approve)}
	}
	keys := make(map[string]config.Text)
	server.Env, server.Headers = references("env", c.Env, keys), references("header", c.Headers, keys)
	o := mcptool.Options{Pins: pins, Version: ThisBuild().Version, Secrets: func(name string) (string, bool) {
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

// references replaces keys in texts by references to secrets. The client resolves them when
// it connects, and removes the values from what it shows.
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

// checkedTools connects to the server and returns its tools. A needed tool without accepted
// definition is an error.
func (s *ToolServer) checkedTools(ctx context.Context, needs requiredTools) ([]*tool.Tool, error) {
	tools, err := s.tools(ctx)
	refused, ok := errors.AsType[*mcptool.RefusedError](err)
	if !ok {
		return tools, err
	}
	var lines []string
	for _, r := range refused.Refusals {
		if !needs.tool(s.Name, r.Tool) {
			continue
		}
		lines = append(lines, Printable(r.String()))
		if Acceptable(r) {
			lines = append(lines, "  look at it with `weir tools`, and accept it with: "+engine.CommandLine("tools", "accept", s.Name+"/"+r.Tool))
		}
	}
	if lines == nil {
		return tools, nil
	}
	return nil, usagef("the flow needs tools that cannot be used:\n  %s", strings.Join(lines, "\n  "))
}

// tools connects to the server and returns the tools that can be used, as
// mcptool.Client.Tools does.
func (s *ToolServer) tools(ctx context.Context) ([]*tool.Tool, error) {
	for kind, texts := range map[string]map[string]config.Text{"env": s.config.Env, "headers": s.config.Headers} {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			if _, err := texts[name].Value(); err != nil {
				return nil, usagef("mcp server %s: %s %s: %w", s.Name, kind, name, err)
			}
		}
	}
	return s.client.Tools(ctx)
}

// accepted returns the tools with their accepted definitions, without starting the server.
// A call starts it, and fails if the server now defines the tool differently.
func (s *ToolServer) accepted() []*tool.Tool {
	pins, err := s.pins.Pins(s.Name)
	if err != nil { // reported where the server is needed
		return nil
	}
	var tools []*tool.Tool
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		if !s.Lists(name) {
			continue
		}
		pin := pins[name]
		t := &tool.Tool{
			Name: mcptool.ModelName(s.Name, name), Alias: mcptool.FlowName(s.Name, name),
			Description: pin.Description, Parameters: pin.Parameters, ReadOnly: pin.ReadOnly,
			Timeout: s.config.Timeout, Approve: tool.Approval(s.config.Approve), OnUnknown: tool.OnUnknown(s.config.OnUnknown), Origin: "mcp:" + s.Name,
		}
		if t.Hash() != pin.Hash {
			continue // the file was edited by hand; the tool must be accepted again
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

// Lists reports whether the configuration offers a tool of the server.
func (s *ToolServer) Lists(tool string) bool {
	return slices.Contains(s.config.Tools, tool) || slices.Contains(s.config.Tools, "*")
}

// Refusals connects to the server and returns the tools that cannot be used, with the
// reasons.
func (s *ToolServer) Refusals(ctx context.Context) ([]mcptool.Refusal, error) {
	_, err := s.tools(ctx)
	if refused, ok := errors.AsType[*mcptool.RefusedError](err); ok {
		return refused.Refusals, nil
	}
	return nil, err
}

// Accept stores the offered definitions, so that models may call the tools.
func (s *ToolServer) Accept(list ...mcptool.Refusal) error { return s.client.Accept(list...) }

// Acceptable reports whether a tool can be used once its definition is accepted.
func Acceptable(r mcptool.Refusal) bool {
	return r.Reason == mcptool.ReasonNew || r.Reason == mcptool.ReasonChanged
}
