package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// checkTime bounds how long one server may take to answer a check.
const checkTime = 10 * time.Second

// CheckServers asks the configured servers whether they answer: the providers for their
// list of models, the MCP servers for their tools, and the hosts of HTTP tools with a HEAD
// request for "/". It calls no model and no tool, and starts the MCP servers that are
// commands. A server without its key is not asked; Config.Findings reports that.
func CheckServers(ctx context.Context, cfg *config.Config) []config.Finding {
	var checks []func(context.Context) config.Finding
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		c := cfg.Providers[name]
		p := providerOf(name, c)
		if _, missing := p.(providerWithoutKey); !missing {
			checks = append(checks, func(ctx context.Context) config.Finding { return checkProvider(ctx, name, c, p) })
		}
	}
	box, err := NewToolbox(cfg)
	if err != nil {
		return append(runChecks(ctx, checks), invalidTools(err))
	}
	for _, s := range box.servers {
		checks = append(checks, s.check)
	}
	for i := range cfg.Tools.HTTP {
		checks = append(checks, func(ctx context.Context) config.Finding { return checkHTTPTool(ctx, cfg, &cfg.Tools.HTTP[i]) })
	}
	list := runChecks(ctx, checks)
	if err := box.Close(); err != nil {
		list = append(list, config.Finding{About: "mcp", State: "note", Detail: "stop the servers: " + err.Error()})
	}
	return list
}

// CheckTools reports tools that the configuration describes wrongly, and asks no server. CheckServers reports them as well.
func CheckTools(cfg *config.Config) []config.Finding {
	box, err := NewToolbox(cfg)
	if err != nil {
		return []config.Finding{invalidTools(err)}
	}
	_ = box.Close() // it has started no server
	return nil
}

func invalidTools(err error) config.Finding {
	return config.Finding{About: "tools", State: "bad", Detail: err.Error(), Remedy: "correct the configuration"}
}

// runChecks runs all checks at once and returns their findings in order.
func runChecks(ctx context.Context, checks []func(context.Context) config.Finding) []config.Finding {
	list := make([]config.Finding, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkTime)
			defer cancel()
			list[i] = check(ctx)
		})
	}
	all.Wait()
	return list
}

func checkProvider(ctx context.Context, name string, c config.Provider, p modelServer) config.Finding {
	f := config.Finding{About: "provider " + name + ", server", State: "ok", Detail: "answers"}
	err := p.Ping(ctx)
	if err == nil {
		return f
	}
	f.State, f.Detail = "bad", err.Error()
	e, ok := errors.AsType[*llm.Error](err)
	switch {
	case ok && e.Code == engine.CodeModelAuth && c.Key.File != "":
		f.Remedy = "write a key that the server accepts into " + c.Key.File
	case ok && e.Code == engine.CodeModelAuth && c.Key.Env != "":
		f.Remedy = "set " + c.Key.Env + " to a key that the server accepts"
	case ok && e.Code == engine.CodeModelAuth:
		f.Remedy = "set a key that the server accepts: providers: {" + name + ": {apiKeyEnv: NAME}}"
	case ok && e.Code == engine.CodeModelRateLimited:
		f.State, f.Remedy = "note", "the server limits requests now; try again later"
	case c.BaseURL != "":
		f.Remedy = "start the server, or correct baseURL of provider " + name
	default:
		f.Remedy = "check the network and its proxy settings (HTTPS_PROXY)"
	}
	return f
}

// check connects to the server and compares its tools with the accepted definitions.
func (s *ToolServer) check(ctx context.Context) config.Finding {
	f := config.Finding{About: "mcp " + s.Name + ", server", State: "ok"}
	tools, err := s.tools(ctx)
	if refused, ok := errors.AsType[*mcptool.RefusedError](err); ok {
		lines := make([]string, len(refused.Refusals))
		f.State = "note"
		for i, r := range refused.Refusals {
			lines[i] = Printable(r.String())
			if !Acceptable(r) {
				f.State = "bad"
			}
		}
		f.Detail = "answers; " + strings.Join(lines, "; ")
		f.Remedy = "look at the definitions with `weir tools`, and accept them with: " + engine.CommandLine("tools", "accept", s.Name)
		if f.State == "bad" {
			f.Remedy = "correct tools of mcp " + s.Name + " in the configuration; `weir tools` shows the details"
		}
		return f
	}
	if err != nil {
		f.State, f.Detail = "bad", Printable(err.Error())
		f.Remedy = "start the server, or correct url of mcp " + s.Name
		if s.config.Command != "" {
			f.Remedy = "correct command, args or env of mcp " + s.Name + "; the server must start and speak MCP on stdin and stdout"
		}
		return f
	}
	f.Detail = fmt.Sprintf("answers, %d accepted", len(tools))
	return f
}

// checkHTTPTool sends a HEAD request for "/" to the host of a tool. It does not call the
// tool, which may have side effects; any status is an answer.
func checkHTTPTool(ctx context.Context, cfg *config.Config, t *config.HTTPTool) config.Finding {
	f := config.Finding{About: "tool " + t.Name + ", server", State: "ok"}
	fail := func(detail, remedy string) config.Finding {
		f.State, f.Detail, f.Remedy = "bad", detail, remedy
		return f
	}
	before, _, _ := strings.Cut(t.URL, "{{") // a template is in path or query
	u, err := url.Parse(before)
	if err != nil {
		return fail("the address is not valid", "correct url of tool "+t.Name)
	}
	u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}
	client, err := HTTPClient(cfg)
	if err == nil {
		client, err = toolClient(u.String(), client, cfg.HTTP.AllowPrivate)
	}
	if err != nil {
		return fail(err.Error(), "correct http.allowPrivate in the configuration")
	}
	copied := *client
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), http.NoBody)
	if err != nil {
		return fail("the address is not valid", "correct url of tool "+t.Name)
	}
	res, err := copied.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return fail(u.Host+": "+err.Error(), "start the server, or correct url of tool "+t.Name)
	}
	_ = res.Body.Close() // a HEAD request has none
	f.Detail = u.Host + " answers"
	return f
}
