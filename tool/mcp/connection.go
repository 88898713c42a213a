package mcptool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/tool"
)

// The limits of a server's definitions.
const (
	maxTools       = 1000
	maxDescription = 8 << 10  // bytes shown to models; the rest is omitted
	maxParameters  = 64 << 10 // bytes of JSON
)

// closeTimeout limits the orderly end of a connection.
const closeTimeout = 8 * time.Second

// definition is a tool as its server defines it.
type definition struct {
	name, description string
	parameters        map[string]any
	readOnly          bool   // according to the server
	invalid           string // why the definition is invalid
}

// connection is one session with a server.
type connection struct {
	link      *serverLink
	session   *mcp.ClientSession
	ended     chan struct{} // closed when the session has ended or was abandoned
	endOnce   sync.Once     // closes dead
	closeOnce sync.Once     // closes session and link

	mu              sync.Mutex
	definitionCache map[string]definition // nil if they must be listed again
	listVersion     int                   // counts the server's notifications of changes
}

// connect starts a session.
func (c *Client) connect(ctx context.Context) (*connection, error) {
	way, err := c.open()
	if err != nil {
		return nil, c.secrets.Error(fmt.Errorf("mcp server %s: %w", c.server.Name, err))
	}
	conn := &connection{link: way, ended: make(chan struct{})}
	client := mcp.NewClient(&mcp.Implementation{Name: "weir", Version: cmp.Or(c.options.Version, "devel")}, &mcp.ClientOptions{
		// A server may ask people to fill in forms, by the result of a call. It may request nothing
		// else: no roots, no model.
		Capabilities:           &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}},
		ElicitationHandler:     refuseElicitation,
		MultiRoundTrip:         &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { conn.invalidateDefinitions() },
	})
	limited, cancel := context.WithTimeout(ctx, c.server.ConnectTimeout)
	defer cancel()
	stop := context.AfterFunc(limited, way.close) // a process that does not respond blocks the SDK's own end
	go func() {
		select {
		case <-c.closed:
			cancel()
		case <-limited.Done():
		}
	}()
	conn.session, err = client.Connect(limited, way.transport, nil)
	stop()
	if err != nil {
		way.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, c.failure("connect", conn, err)
	}
	go func() {
		_ = conn.session.Wait() // the calls that it ended return its error
		conn.close()
	}()
	return conn, nil
}

// refuseElicitation answers servers of earlier protocols, which ask in the middle of a call: a
// person may take longer to answer than the process lives.
func refuseElicitation(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return nil, errors.New("a server cannot ask a person in the middle of a call; servers of MCP 2026-07-28 and later ask in the result")
}

// alive reports whether the session can be used.
func (c *connection) alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// close ends the session in an orderly way, or after closeTimeout without.
func (c *connection) close() {
	c.endOnce.Do(func() { close(c.ended) })
	c.closeOnce.Do(func() {
		done := make(chan struct{})
		go func() {
			_ = c.session.Close() // a killed process is expected
			close(done)
		}()
		timer := time.NewTimer(closeTimeout)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
		c.link.close()
	})
}

// invalidateDefinitions makes the next use list the tools again.
func (c *connection) invalidateDefinitions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.definitionCache = nil
	c.listVersion++
}

// definitions returns the tools of the server, by its names. They are listed once, and
// again after the server has reported a change.
func (c *connection) definitions(ctx context.Context) (map[string]definition, error) {
	c.mu.Lock()
	known, epoch := c.definitionCache, c.listVersion
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	known = make(map[string]definition)
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(known) == maxTools {
			return nil, fmt.Errorf("it has more than %d tools", maxTools)
		}
		known[t.Name] = definitionOf(t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listVersion == epoch {
		c.definitionCache = known
	}
	return known, nil
}

// definitionOf reads the server's definition of a tool.
func definitionOf(t *mcp.Tool) definition {
	d := definition{
		name: t.Name, description: tool.Cut(tool.Clean(t.Description), maxDescription),
		readOnly: t.Annotations != nil && t.Annotations.ReadOnlyHint,
	}
	parameters, ok := t.InputSchema.(map[string]any)
	b, err := json.Marshal(t.InputSchema)
	switch {
	case !ok || err != nil:
		d.invalid = "its parameters are not a JSON Schema of an object"
	case len(b) > maxParameters:
		d.invalid = fmt.Sprintf("its parameters are longer than %d bytes", maxParameters)
	case tool.Clean(t.Name) != t.Name || len(t.Name) > 128:
		d.invalid = "its name has control characters, or is longer than 128 bytes"
	}
	d.parameters = parameters
	return d
}
