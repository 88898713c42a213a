package mcptool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/tool/template"
)

// Options are the external services of a client.
type Options struct {
	// Pins store the accepted definitions; required.
	Pins Pins
	// HTTP connects to servers over HTTP: use a client that cannot be led to forbidden
	// destinations. Its Timeout is not used. Servers started by a command need none.
	HTTP *http.Client
	// Secrets resolves secrets.NAME when the client connects; nil has none.
	Secrets func(name string) (string, bool)
	// Version is the version of this program reported to the server; "" means "devel".
	Version string
}

// Client offers the tools of one MCP server. It connects on first use, and again after the
// connection was lost. It is safe for concurrent use; Close it.
type Client struct {
	server     Server
	options    Options
	secrets    *template.Secrets
	slots      chan struct{} // one for each call in flight
	connecting chan struct{} // held while connecting
	closed     chan struct{}

	mu   sync.Mutex
	conn *connection // nil until connected, and after a loss
	once sync.Once   // closes closed
}

// NewClient returns a client without connecting. The error says what is wrong with the
// server.
func NewClient(s Server, o Options) (*Client, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if o.Pins == nil {
		return nil, errors.New("mcp tools need Options.Pins")
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if s.ConnectTimeout <= 0 {
		s.ConnectTimeout = DefaultConnectTimeout
	}
	if s.Parallel <= 0 {
		s.Parallel = DefaultParallel
	}
	return &Client{
		server: s, options: o, secrets: template.NewSecrets(o.Secrets),
		slots: make(chan struct{}, s.Parallel), connecting: make(chan struct{}, 1), closed: make(chan struct{}),
	}, nil
}

// Tools connects and returns the tools that the configuration lists and whose definition is
// the accepted one, by name. If there are others, the error is a *RefusedError, and the
// returned tools are valid; with any other error there are none.
//
// A tool is bound to its present definition: if the server changes it, a call is refused
// with a *RefusedError.
func (c *Client) Tools(ctx context.Context) ([]*tool.Tool, error) {
	conn, err := c.connection(ctx)
	if err != nil {
		return nil, err
	}
	offered, err := conn.definitions(ctx)
	if err != nil {
		return nil, c.failure("list its tools", conn, err)
	}
	pins, err := c.options.Pins.Pins(c.server.Name)
	if err != nil {
		return nil, err
	}
	var tools []*tool.Tool
	refused := new(RefusedError)
	for _, name := range c.configuredTools(offered) {
		d, ok := offered[name]
		if !ok {
			refused.Refusals = append(refused.Refusals, Refusal{Server: c.server.Name, Tool: name, Reason: ReasonMissing})
			continue
		}
		t, refusal := c.checkDefinition(d, pins)
		if refusal != nil {
			refused.Refusals = append(refused.Refusals, *refusal)
			continue
		}
		tools = append(tools, t)
	}
	if refused.Refusals != nil {
		return tools, refused
	}
	return tools, nil
}

// Accept pins definitions as shown in refusals, so that Tools offers these from now on. For
// a refusal with another reason than ReasonNew or ReasonChanged it returns an error and
// accepts nothing.
func (c *Client) Accept(refusals ...Refusal) error {
	pins, err := c.options.Pins.Pins(c.server.Name)
	if err != nil {
		return err
	}
	pins = maps.Clone(pins)
	if pins == nil {
		pins = make(map[string]Pin, len(refusals))
	}
	for _, r := range refusals {
		if r.Server != c.server.Name || r.Reason != ReasonNew && r.Reason != ReasonChanged {
			return fmt.Errorf("accept: %s", r)
		}
		pins[r.Tool] = r.Offered
	}
	return c.options.Pins.SetPins(c.server.Name, pins)
}

// configuredTools returns the sorted names of the tools that the configuration lists.
func (c *Client) configuredTools(offered map[string]definition) []string {
	names := slices.Clone(c.server.Tools)
	if slices.Contains(names, "*") {
		names = slices.DeleteFunc(names, func(n string) bool { return n == "*" })
		names = slices.AppendSeq(names, maps.Keys(offered))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkDefinition returns the tool of a definition, or why it is not offered.
func (c *Client) checkDefinition(d definition, pins map[string]Pin) (*tool.Tool, *Refusal) {
	refusal := &Refusal{Server: c.server.Name, Tool: d.name}
	if d.invalid != "" {
		refusal.Reason, refusal.Changes = ReasonInvalid, []string{d.invalid}
		return nil, refusal
	}
	t := c.newTool(d)
	refusal.Offered = pinOf(t)
	pin, ok := pins[d.name]
	switch {
	case !ok:
		refusal.Reason = ReasonNew
		return nil, refusal
	case pin.Hash != refusal.Offered.Hash:
		refusal.Reason, refusal.Changes = ReasonChanged, definitionChanges(pin, refusal.Offered)
		return nil, refusal
	}
	return t, nil
}

// newTool creates a tool from a definition.
func (c *Client) newTool(d definition) *tool.Tool {
	t := &tool.Tool{
		Name: ModelName(c.server.Name, d.name), Alias: FlowName(c.server.Name, d.name),
		Description: d.description, Parameters: d.parameters, ReadOnly: d.readOnly && c.server.TrustReadOnly,
		Timeout: c.server.Timeout, MaxOutput: c.server.MaxOutput,
		Approve: c.server.approval(d.name), OnUnknown: c.server.OnUnknown, Origin: "mcp:" + c.server.Name,
	}
	r := &remoteTool{client: c, name: d.name, pin: pinOf(t), readOnly: t.ReadOnly}
	// A schema that does not compile here is checked only by the server.
	r.arguments, _ = tool.NewArguments(d.parameters)
	t.Call = r.call
	return t
}

// connection returns the live connection, or connects.
func (c *Client) connection(ctx context.Context) (*connection, error) {
	select {
	case c.connecting <- struct{}{}:
		defer func() { <-c.connecting }()
	case <-c.closed:
		return nil, c.errClosed()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil && conn.alive() {
		return conn, nil
	}
	select {
	case <-c.closed:
		return nil, c.errClosed()
	default:
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	return conn, nil
}

func (c *Client) errClosed() error {
	return fmt.Errorf("mcp server %s: the client is closed", c.server.Name)
}

// failure returns an error with the server's last output, without secrets.
func (c *Client) failure(what string, conn *connection, err error) error {
	if words := conn.link.stderrTail(); words != "" {
		err = fmt.Errorf("%w; it wrote last: %s", err, words)
	}
	return c.secrets.Error(fmt.Errorf("mcp server %s: %s: %w", c.server.Name, what, err))
}

// Close ends the connection and the server's processes, and waits for that, at most some
// seconds. Calls in flight fail.
func (c *Client) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.connecting <- struct{}{} // connecting stops when closed is closed
	defer func() { <-c.connecting }()
	c.mu.Lock()
	conn := c.conn
	c.conn = nil
	c.mu.Unlock()
	if conn != nil {
		conn.close()
	}
	return nil
}
