//go:build unix

package pgtest

import (
	"net"
	"sync"
	"testing"
)

// Proxy passes connections on to a server, and cuts one at a given point. Its methods may be called at the same time.
type Proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex // guards the following fields
	armed bool
	after int // bytes that pass until the cut
	up    bool
}

// StartProxy starts a proxy for the address of a server. It ends with the test.
func StartProxy(tb testing.TB, server string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed by the test
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{listener: l, server: server}
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", server) //nolint:noctx // pass closes it
			if err != nil {
				_ = client.Close()
				continue
			}
			go p.pass(client, back, true)
			go p.pass(back, client, false)
		}
	}()
	return p
}

// Address returns the TCP address of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// pass copies until a cut, which closes both connections.
func (p *Proxy) pass(from, to net.Conn, up bool) {
	defer from.Close() //nolint:errcheck // cut
	defer to.Close()   //nolint:errcheck // cut
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			keep, cut := p.allow(n, up)
			if _, e := to.Write(b[:keep]); e != nil || cut {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// allow returns how many of the bytes pass, and whether the connection is cut after them.
func (p *Proxy) allow(n int, up bool) (keep int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed || p.up != up {
		return n, false
	}
	if n < p.after {
		p.after -= n
		return n, false
	}
	p.armed = false
	return p.after, true
}

// Arm has the connection cut that passes the last of so many bytes more on this way, counted over all connections: up is
// towards the server.
func (p *Proxy) Arm(up bool, after int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.up, p.after = true, up, after
}

// Armed reports whether the cut is still to be made.
func (p *Proxy) Armed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.armed
}

// Disarm makes no cut, and returns whether it has been made.
func (p *Proxy) Disarm() (cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut = !p.armed
	p.armed = false
	return cut
}
