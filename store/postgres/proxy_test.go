//go:build unix

package postgres

import (
	"net"
	"sync"
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
)

// proxy passes connections on to a server, and cuts one at a given point.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex // guards the following fields
	armed bool
	after int // bytes that pass until the cut
	up    bool
	bytes [2]int // that passed down and up since arm
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: server}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", server)
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

// pass copies until a cut, which closes both connections.
func (p *proxy) pass(from, to net.Conn, up bool) {
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
func (p *proxy) allow(n int, up bool) (keep int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	way := 0
	if up {
		way = 1
	}
	p.bytes[way] += n
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

// arm has the next connection cut that passes so many bytes more on this way.
func (p *proxy) arm(up bool, after int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.up, p.after, p.bytes = true, up, after, [2]int{}
}

// disarm returns whether the cut has been made, and the bytes down and up.
func (p *proxy) disarm() (cut bool, bytes [2]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut, bytes = !p.armed, p.bytes
	p.armed = false
	return cut, bytes
}

// TestConnectionsCutDuringACommit cuts the connection after each number of bytes that a commit
// sends and receives, the COMMIT and its answer included.
func TestConnectionsCutDuringACommit(t *testing.T) {
	server := pgtest.Start(t)
	direct := server.Schema(t)
	p := startProxy(t, server.Address())
	s := openAt(t, server.URL(p.listener.Addr().String(), "&search_path=s1"), Options{MaxConnections: 1})
	w, err := newTestWriter(s, "r")
	if err != nil {
		t.Fatal(err)
	}
	step := 5
	if testing.Short() {
		step = 41
	}
	for _, up := range []bool{true, false} {
		cuts := 0
		for after := 0; ; after += step {
			for range 2 { // the statements are prepared
				if err := w.append(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			p.arm(up, after)
			err := w.append(t.Context())
			cut, _ := p.disarm()
			if err != nil {
				t.Fatalf("cut after %d bytes (up %v): %v", after, up, err)
			}
			if !cut {
				break // the commit is shorter
			}
			cuts++
		}
		if cuts < 5 {
			t.Errorf("%d cuts", cuts)
		}
		t.Logf("up %v: %d cuts", up, cuts)
	}
	checkCommits(t, openAt(t, direct, Options{}), "r", w.seq)
}
