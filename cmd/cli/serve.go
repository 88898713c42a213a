package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/agui"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/server/mcp"
	"github.com/weir-run/weir/server/openai"
	"github.com/weir-run/weir/server/ui"
)

type serveOptions struct {
	addr    string
	hosts   []string
	origins []string
	tokens  bool
	mcpFork bool
	demo    bool
	// started, if set, is called when the server listens at an address.
	started func(ctx context.Context, a *application, url string) error
	maxBody int64
	maxFile int64
	public  string
	base    string
	rate    float64
	proxies []string
	header  string
	signOut string
}

func (p *cli) serveCommand() *cobra.Command {
	o := &serveOptions{}
	c := &cobra.Command{
		Use:   "serve [FLOW|FOLDER]...",
		Short: "Serve flows, runs and sessions over HTTP",
		Long: `Serve flows over HTTP: clients start them, talk to them, answer their questions and read
what happened. The address that it prints is a web page for people; /docs lists the operations and /openapi.json describes them. Of a FOLDER the
files with the key weir are served.

The server listens on this machine only, unless --addr says otherwise. There a request
without a token acts for you, on all runs in the database. With --tokens, and always when
other machines can reach the address, each request needs a token of "weir tokens create".
Tokens travel in the clear: let other machines reach the server through a proxy that
encrypts (TLS).

SIGHUP has it read its configuration again: secrets, and keys and addresses of providers, change
without a restart.

The process also continues runs that other processes left unfinished. SIGTERM and Ctrl-C
drain it: no new request is taken, streams ask their readers to come back, effects in flight
may end, and the runs can be resumed.`,
		Example: `  weir serve flows/
  weir serve --demo
  weir serve --tokens invoice.yaml support.yaml
  weir serve --addr 0.0.0.0:8420 --host weir.example.org flows/`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return p.serve(c.Context(), args, o) },
	}
	f := c.Flags()
	f.StringVar(&o.addr, "addr", "127.0.0.1:8420", "listen on this `HOST:PORT`; port 0 takes a free one")
	f.StringSliceVar(&o.hosts, "host", nil, "accept requests for this host `NAME` too; may be repeated")
	f.StringSliceVar(&o.origins, "cors", nil, "let pages of this `ORIGIN`, such as https://console.example.org, use the API from a browser; requires tokens; may be repeated")
	f.Float64Var(&o.rate, "rate", 0, "accept at most `N` requests a second of each token, ten times as many at once (default: no limit)")
	f.StringVar(&o.public, "public-url", "", "the `URL` under which clients reach the server, for links that it makes")
	f.StringSliceVar(&o.proxies, "trusted-proxy", nil, "believe X-Forwarded-For, and --user-header, of proxies at this address or `CIDR`; may be repeated")
	f.StringVar(&o.header, "user-header", "", "the `HEADER` in which a trusted proxy names the user, such as X-Forwarded-User; requires --trusted-proxy")
	f.StringVar(&o.signOut, "sign-out-url", "", "the `URL` or path, such as /oauth2/sign_out, at which a browser signs out of the trusted proxy")
	f.StringVar(&o.base, "base-path", "", "serve below this `PATH`, such as /weir, which a proxy passes on unchanged")
	f.BoolVar(&o.tokens, "tokens", false, "require a token for every request, also from this machine")
	f.BoolVar(&o.demo, "demo", false, "serve two flows with a scripted model, and show how each protocol is tried")
	f.BoolVar(&o.mcpFork, "mcp-fork", false, "offer the tool weir_fork_run to MCP clients")
	f.Int64Var(&o.maxFile, "max-file", 32<<20, "the largest file that clients may upload, in `BYTES`")
	f.Int64Var(&o.maxBody, "max-body", 8<<20, "the largest body of a request in `BYTES`")
	return c
}

func (p *cli) serve(ctx context.Context, paths []string, o *serveOptions) error {
	if o.maxBody < 1 {
		return usagef("--max-body: expected at least 1")
	}
	if o.maxFile < 1 || o.maxFile > server.MaxFileLimit {
		return usagef("--max-file: expected 1 to %d", server.MaxFileLimit)
	}
	if o.rate < 0 || math.IsNaN(o.rate) || math.IsInf(o.rate, 0) {
		return usagef("--rate: expected 0 for no limit, or a number of requests a second")
	}
	if u, err := url.Parse(o.public); err != nil || o.public != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil) {
		return usagef("--public-url: expected an address such as https://weir.example.org")
	}
	if o.header != "" && len(o.proxies) == 0 {
		return usagef("--user-header: say with --trusted-proxy CIDR which addresses may send it; otherwise every client could name any user")
	}
	if _, err := prefixes(o.proxies); err != nil {
		return err
	}
	if o.demo {
		if err := checkDemo(paths, p.db); err != nil {
			return err
		}
		return p.serveDemo(ctx, o)
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	flows, err := app.LoadFlows(cfg.Flows.Folders, paths...)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.addr)
	if err != nil {
		return usagef("--addr: %w", err)
	}
	defer l.Close() //nolint:errcheck // Serve has closed it where that matters
	a, err := p.openServed(ctx, flows)
	if err != nil {
		return err
	}
	return errors.Join(p.serveOn(ctx, a, l, flows, o), a.close())
}

func (p *cli) openServed(ctx context.Context, flows []app.ServedFlow) (*application, error) {
	o := app.Options{Recover: true, Flows: []*weir.Flow{}}
	for _, f := range flows {
		o.Flows = append(o.Flows, f.Flow)
	}
	return p.open(ctx, o)
}

func (p *cli) serveOn(ctx context.Context, a *application, l net.Listener, flows []app.ServedFlow, o *serveOptions) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	login := oidcOf(&cfg.Server.OIDC)
	if _, err := cfg.Server.OIDC.ClientSecret.Value(); err != nil {
		return usagef("server.oidc.clientSecret: %w", err)
	}
	tokens := o.tokens || len(o.origins) > 0 || o.header != "" || login != nil || !onlyThisMachine(l.Addr())
	if tokens && o.header == "" && login == nil {
		if err := p.checkTokens(ctx, a); err != nil {
			return err
		}
	}
	proxies, err := prefixes(o.proxies)
	if err != nil {
		return err
	}
	s, err := server.New(ctx, server.Options{
		App: a.App, Flows: flows, Tests: p.testsOf(cfg, a.HTTP), RequireToken: tokens, Hosts: o.hosts, Origins: o.origins, MaxBody: o.maxBody, MaxFile: o.maxFile, PublicURL: o.public, BasePath: o.base, TrustedProxies: proxies, UserHeader: o.header, SignOutURL: o.signOut, OIDC: login, TokenRate: o.rate, Logger: p.logger(), Page: ui.Handler(),
		Folders: foldersOf(cfg),
		Backups: server.Backups{Folder: cfg.Server.Backup.Folder, Every: cfg.Server.Backup.Every, Keep: cfg.Server.Backup.Keep},
		Reload:  func() ([]string, error) { return a.Reload(p.configOptions()) },
		Audit:   auditlog.Options{Keep: cfg.Server.Audit.Keep, Entries: cfg.Server.Audit.Entries},
	})
	if err != nil {
		return err
	}
	agui.Register(s)
	openai.Register(s)
	mcp.Register(s, mcp.Options{Version: app.ThisBuild().Version, Fork: o.mcpFork})
	stop := context.AfterFunc(ctx, s.Drain)
	defer stop()
	defer p.reloadOnHangup(a)()
	address := "http://" + l.Addr().String() + o.base
	p.notef("weir: serving %s on %s", count(len(flows), "flow"), address)
	if !tokens {
		p.notef("weir: requests need no token; only this machine can reach the address")
	}
	if o.started != nil {
		if err := o.started(ctx, a, address); err != nil {
			return err
		}
	}
	return s.Serve(l)
}

// oidcOf returns who signs people in, nil for nobody.
func oidcOf(c *config.OIDC) *server.OIDC {
	if c.Issuer == "" {
		return nil
	}
	o := &server.OIDC{
		Issuer: c.Issuer, ClientID: c.ClientID, Scopes: c.Scopes, User: c.User, UnverifiedEmail: c.UnverifiedEmail, Groups: c.Groups,
		Roles: map[string]server.Role{}, Role: server.Role(c.Role), Lifetime: c.Session,
	}
	if c.ClientSecret.Set() {
		o.Secret = c.ClientSecret.Value
	}
	for group, role := range c.Roles {
		o.Roles[group] = server.Role(role)
	}
	return o
}

// reloadOnHangup reads the configuration again with each SIGHUP, until the function that it returns is called.
func (p *cli) reloadOnHangup(a *application) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for range signals {
			changed, err := a.Reload(p.configOptions())
			switch {
			case err != nil:
				p.notef("weir: %v", err)
			case len(changed) == 0:
				p.notef("weir: the configuration was read again; keys in files too")
			default:
				p.notef("weir: the configuration was read again; changed: %s", strings.Join(changed, ", "))
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// prefixes parses addresses, of which each is a prefix or a single one.
func prefixes(list []string) (out []netip.Prefix, err error) {
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if a, single := netip.ParseAddr(text); single == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil || p.Bits() <= 0 {
			return nil, usagef("--trusted-proxy %s: expected the addresses of proxies, such as 10.1.2.0/24 or 127.0.0.1", text)
		}
		out = append(out, p)
	}
	return out, nil
}

// checkTokens returns an error if the store has no valid token.
func (p *cli) checkTokens(ctx context.Context, a *application) error {
	list, err := a.Store.Tokens(ctx, "")
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Valid(time.Now()) {
			return nil
		}
	}
	return usagef("the server requires tokens, and there is none: make one with `%s`", p.commandLine("tokens", "create", "--user", "NAME", "--scope", "read,start,answer"))
}

// onlyThisMachine reports whether other machines cannot reach an address.
func onlyThisMachine(a net.Addr) bool {
	addr, err := netip.ParseAddrPort(fmt.Sprint(a))
	return err == nil && addr.Addr().IsLoopback()
}

// foldersOf returns the folders of a configuration whose files may start runs.
func foldersOf(cfg *config.Config) map[string]server.Folder {
	out := make(map[string]server.Folder, len(cfg.Server.Folders))
	for name, f := range cfg.Server.Folders {
		out[name] = server.Folder{Path: f.Path, Users: f.Users}
	}
	return out
}
