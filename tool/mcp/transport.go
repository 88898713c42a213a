package mcptool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/tool/template"
)

// The limits of a connection.
const (
	maxMessage  = 16 << 20 // bytes of one message; the SDK's own limit for lines and events
	maxStderr   = 8 << 10  // stored bytes of a server's last output
	exitGrace   = 2 * time.Second
	outputGrace = time.Second
)

// serverLink is a transport to a server and the function that ends it.
type serverLink struct {
	transport  mcp.Transport
	close      func()        // ends what the transport started; may be called repeatedly
	stderrTail func() string // the server's last output
}

// open returns a link to the server; a process starts only when it is connected.
func (c *Client) open() (*serverLink, error) {
	if c.server.URL != "" {
		return c.openHTTP()
	}
	return c.openProcess()
}

func (c *Client) openProcess() (*serverLink, error) {
	env, err := c.environment()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.server.Command[0], c.server.Command[1:]...) //nolint:gosec,noctx // the configuration names it; it outlives the call that starts it
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.server.Dir, env, outputGrace
	words := new(tailBuffer)
	cmd.Stderr = words
	ownGroup(cmd)
	p := &process{cmd: cmd}
	return &serverLink{transport: p, close: p.end, stderrTail: words.String}, nil
}

// process is the transport of a command.
type process struct {
	mu  sync.Mutex // held while cmd starts
	cmd *exec.Cmd
}

// Connect implements mcp.Transport.
func (p *process) Connect(ctx context.Context) (mcp.Connection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return (&mcp.CommandTransport{Command: p.cmd, TerminateDuration: exitGrace}).Connect(ctx)
}

// end kills the started process, if any.
func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	killGroup(p.cmd)
}

// environment returns the environment of a server's process.
func (c *Client) environment() ([]string, error) {
	var env []string
	for _, name := range slices.Concat([]string{"PATH", "HOME", "LANG", "TMPDIR"}, c.server.PassEnv) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	more, err := c.expandAll(c.server.Env)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		env = append(env, name+"="+more[name])
	}
	return env, nil
}

// expandAll inserts secrets into texts.
func (c *Client) expandAll(texts map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(texts))
	for name, s := range texts {
		t, err := template.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if t.HasKind(template.Args) {
			return nil, fmt.Errorf("%s: only {{ secrets.NAME }} is allowed here", name)
		}
		if out[name], err = t.Expand(nil, c.secrets); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

func (c *Client) openHTTP() (*serverLink, error) {
	if c.options.HTTP == nil {
		return nil, errors.New("a server of HTTP needs Options.HTTP")
	}
	headers, err := c.expandAll(c.server.Headers)
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(c.server.URL)
	if err != nil {
		return nil, err
	}
	client := *c.options.HTTP
	client.Timeout = 0 // streams stay open; calls have their own limit
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = &headerTransport{next: next, origin: to, headers: headers}
	return &serverLink{
		transport:  &mcp.StreamableClientTransport{Endpoint: c.server.URL, HTTPClient: &client, MaxRetries: 2, MaxEventSize: maxMessage},
		close:      func() {},
		stderrTail: func() string { return "" },
	}, nil
}

// headerTransport adds the headers to requests to the server's own origin, and limits the
// length of a response that is one message.
type headerTransport struct {
	next    http.RoundTripper
	origin  *url.URL
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (g *headerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == g.origin.Scheme && strings.EqualFold(req.URL.Host, g.origin.Host) {
		req = req.Clone(req.Context())
		for name, v := range g.headers {
			req.Header.Set(name, v)
		}
	}
	resp, err := g.next.RoundTrip(req)
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: maxMessage}
	}
	return resp, err
}

// limitedBody is a body that fails if it is too long.
type limitedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxMessage)
	}
	return n, err
}

// tailBuffer stores the end of what is written to it.
type tailBuffer struct {
	mu  sync.Mutex
	b   []byte
	cut bool
}

// Write implements io.Writer; it never fails.
func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - maxStderr; over > 0 {
		t.b, t.cut = append(t.b[:0], t.b[over:]...), true
	}
	return len(p), nil
}

// String returns the stored text, without a partial first line.
func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := string(t.b)
	if t.cut {
		_, s, _ = strings.Cut(s, "\n")
	}
	return tool.Clean(strings.TrimSpace(s))
}
