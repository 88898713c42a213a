package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flow/graph"
	"github.com/weir-run/weir/flowtest"
	"github.com/weir-run/weir/internal/lru"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/server/filestore"
	"github.com/weir-run/weir/server/oidc"
	"github.com/weir-run/weir/server/trigger"
	"github.com/weir-run/weir/server/webhook"
)

// Options of a Server. App is required.
type Options struct {
	// App is the open process. The caller shuts it down after the Server.
	App *app.App
	// Flows are what clients may start.
	Flows []app.ServedFlow
	// RequireToken refuses requests without a token. Otherwise a request without one acts for
	// the owner of the process, on everything. Set it unless only this machine can reach the
	// server.
	RequireToken bool
	// Hosts are the names, without a port, under which clients may reach the server, besides
	// localhost and literal loopback addresses. A request for another host is refused, so that a page of another site
	// cannot reach the server through a name that resolves to this machine.
	Hosts []string
	// Origins are the sites, such as "https://console.example.org", whose pages may send requests
	// from a browser and read the answers (CORS). They send tokens themselves, so that they
	// need RequireToken; cookies are not used.
	Origins []string
	// PublicURL is the address under which clients reach the server, such as
	// "https://weir.example.org"; with "" answer links have no host. With a BasePath it may end with that,
	// and has no other path.
	PublicURL string
	// BasePath, such as "/weir", is what the path of every request begins with: a proxy passes it on
	// unchanged. No other path exists then. "" is none.
	BasePath string
	// TrustedProxies are the addresses of proxies whose X-Forwarded-For is believed: limits by address then
	// count the client's. A prefix that contains all addresses is refused.
	TrustedProxies []netip.Prefix
	// UserHeader is the header in which a trusted proxy names the user of a request, such as
	// X-Forwarded-User. A request with it from elsewhere is refused. It needs TrustedProxies and RequireToken.
	UserHeader string
	// SignOutURL is the path or address at which a browser signs out of the trusted proxy, such as /oauth2/sign_out; "" is none.
	SignOutURL string
	// OIDC has people sign in with a browser. It needs RequireToken and PublicURL; nil does not.
	OIDC *OIDC
	// TokenRate bounds the requests of each token to this number a second in the long run, with ten times
	// as many at once; 0 does not. Each process counts by itself.
	TokenRate float64
	// MaxBody bounds the body of a request in bytes; 0 is 8 MiB.
	MaxBody int64
	// MaxFile bounds an uploaded file in bytes, at most MaxFileLimit; 0 is 32 MiB.
	MaxFile int64
	// Heartbeat is how often a stream without events sends a comment; 0 is 15 s.
	Heartbeat time.Duration
	// Page answers GET / and the files below /assets/ with the web page, and sets its own
	// content security policy; server/ui has it. Nil serves no page.
	Page http.Handler
	// Tests are the options of tests of flows that clients run. Tests of nodes with code need
	// its Executors.
	Tests flowtest.Options
	// Backups say where backups of the database are written, and when.
	Backups Backups
	// Folders are those whose files may start runs, by the names that triggers use.
	Folders map[string]Folder
	// Sweep is how often the server looks for what is due: expired links, retention and backups. 0 is a minute.
	Sweep time.Duration
	// Reload reads the configuration again and returns the paths of what has changed. Nil answers such requests with 501.
	Reload func() ([]string, error)
	// Audit bounds the audit log.
	Audit auditlog.Options
	// Logger is where failures of the server go; nil is slog.Default.
	Logger *slog.Logger
}

// Server answers HTTP requests. Its methods may be called concurrently.
type Server struct {
	app       *app.App
	flows     map[string]*app.ServedFlow
	names     []string // of flows, sorted
	options   Options
	logger    *slog.Logger
	key       []byte // of digests; the same in every process on the store
	api       huma.API
	routes    *routes
	sameSite  *http.CrossOriginProtection
	draining  chan struct{}
	drainOnce sync.Once
	metrics   *metrics
	calls     inFlight
	layouts   layoutCache
	linkRate  *rateLimit   // by address
	loginRate *rateLimit   // by address
	issuer    *oidc.Issuer // nil where people do not sign in
	tokenRate *rateLimit   // nil for none
	hooks     *webhook.Sender
	triggers  *trigger.Runner
	audit     *auditlog.Log // nil where the store has no documents
	backups   backupWriter
	files     *filestore.Store
	testing   sync.Mutex // held while a client runs tests
}

const (
	defaultMaxBody   = 8 << 20
	defaultHeartbeat = 15 * time.Second
	// maxHeader bounds the headers of a request in bytes.
	maxHeader = 32 << 10
	// headerTime and bodyTime bound how long a client may take to send a request. The request
	// ends when bodyTime is over, so it exceeds the longest wait for a run.
	headerTime = 10 * time.Second
	bodyTime   = 2 * time.Minute
	// answerTime bounds how long an answer may take, and writeTime how long a client may take
	// to receive a piece of a stream or an export, which may last longer.
	answerTime = 3 * time.Minute
	writeTime  = 30 * time.Second
	idleTime   = 2 * time.Minute
)

// New returns a Server of an open process. It reads the server's secret from the store and
// starts nothing.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.MaxFile == 0 {
		o.MaxFile = defaultMaxFile
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.Sweep == 0 {
		o.Sweep = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.MaxFile > MaxFileLimit {
		return nil, fmt.Errorf("files of %d bytes: at most %d are possible", o.MaxFile, MaxFileLimit)
	}
	if err := errors.Join(o.placeBelow(), o.checkProxies(), o.checkBackups(), o.checkFolders()); err != nil {
		return nil, err
	}
	issuer, err := o.checkOIDC()
	if err != nil {
		return nil, err
	}
	sameSite, err := o.trustOrigins()
	if err != nil {
		return nil, err
	}
	if o.App.HTTP == nil { // not opened by app.Open
		var err error
		if o.App.HTTP, err = app.GuardedClient(); err != nil {
			return nil, err
		}
	}
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return nil, fmt.Errorf("make the secret of the server: %w", err)
	}
	key, err := o.App.Store.AccessKey(ctx, "server", fresh)
	if err != nil {
		return nil, err
	}
	s := &Server{
		app: o.App, options: o, logger: o.Logger, key: key, flows: make(map[string]*app.ServedFlow),
		layouts: layoutCache{Map: lru.Map[string, *graph.Layout]{Max: maxLayouts}},
		routes:  newRoutes(), sameSite: sameSite, draining: make(chan struct{}), metrics: newMetrics(),
		linkRate: newRateLimit(1, 60), loginRate: newRateLimit(1, 60), issuer: issuer, files: filestore.New(o.App.Store),
	}
	if o.TokenRate > 0 {
		s.tokenRate = newRateLimit(o.TokenRate, max(1, 10*o.TokenRate))
	}
	s.triggers = trigger.New(trigger.Options{
		Store: o.App.Store, Start: s.startTriggered, Ended: s.hasEnded, Cancel: s.cancelTriggered, Folder: s.folderOf, Key: key, Logger: o.Logger,
	})
	s.hooks = webhook.New(webhook.Options{Store: o.App.Store, Runs: o.App.Store, HTTP: o.App.HTTP, Key: key, Logger: o.Logger})
	for i := range o.Flows {
		s.flows[o.Flows[i].Name] = &o.Flows[i]
		s.names = append(s.names, o.Flows[i].Name)
	}
	if o.App.Store.Capabilities().Documents != nil {
		s.audit = auditlog.New(o.App.Store, o.Audit)
	}
	s.api = newAPI(s.routes, o.BasePath)
	s.registerRoutes()
	return s, nil
}

// Serve answers requests on a listener until Drain is called. It returns nil then.
func (s *Server) Serve(l net.Listener) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	defer s.workInBackground()()
	done := make(chan error, 1)
	go func() {
		<-s.draining
		ctx, cancel := context.WithTimeout(context.Background(), bodyTime)
		defer cancel()
		done <- h.Shutdown(ctx)
	}()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.Drain()
		return fmt.Errorf("serve: %w", err)
	}
	return <-done
}

// Drain has Serve accept no more connections and return when all requests are answered.
// Streams end at once, and ask their readers to reconnect. /readyz fails from now on.
// A second call does nothing.
func (s *Server) Drain() { s.drainOnce.Do(func() { close(s.draining) }) }

// isDraining reports whether Drain was called.
func (s *Server) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}
