package server_test

import (
	"flag"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

var slowClients = flag.Int("slow.clients", 100, "clients that send a byte a second; with 2000 or more the test waits until bodies are cut too")

// slowClient sends the beginning of a request, and then a byte a second until the connection is closed.
type slowClient struct {
	conn net.Conn
	cut  chan struct{} // closed when the server has closed the connection
}

// startSlowClient opens a connection. The rest of the request never ends.
func startSlowClient(t *testing.T, address, begin string) *slowClient {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte(begin)); err != nil {
		t.Fatal(err)
	}
	c := &slowClient{conn: conn, cut: make(chan struct{})}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := conn.Write([]byte("a")); err != nil {
					return
				}
			case <-c.cut:
				return
			}
		}
	}()
	go func() {
		defer close(c.cut)
		_, _ = io.Copy(io.Discard, conn) // until the server closes it
	}()
	return c
}

// TestSlowClientsDoNotKeepOthersFromWorking has clients send headers, and bodies, a byte a second, while others start and read runs. The
// server cuts those whose headers take longer than it allows, and bodies after two minutes.
func TestSlowClientsDoNotKeepOthersFromWorking(t *testing.T) {
	t.Parallel()
	n := *slowClients
	if testing.Short() {
		n = 20
	}
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	c := p.anyone("ada")
	address := strings.TrimPrefix(p.url, "http://")
	var headers, bodies []*slowClient
	for i := range n {
		if i%2 == 0 {
			headers = append(headers, startSlowClient(t, address, "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nX-Slow: "))
			continue
		}
		bodies = append(bodies, startSlowClient(t, address, "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+c.Token+
			"\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"flow\":\""))
	}
	var times []time.Duration
	for i := 0; i < 50 || len(headers) > 0 && !isCut(headers); i++ {
		begin := time.Now()
		if _, err := c.StartRun(t.Context(), client.Start{Flow: "ask", Inputs: map[string]any{"name": "Ada"}}); err != nil {
			t.Fatalf("while %d clients are slow: %v", n, err)
		}
		if a := p.send(http.MethodGet, "/v1/runs?limit=5", "", withToken(c.Token)); a.status != http.StatusOK {
			t.Fatalf("while %d clients are slow: %d %s", n, a.status, a.body)
		}
		times = append(times, time.Since(begin))
		if i > 50 {
			pause(t) // a moderate load, until the headers are cut
		}
	}
	slices.Sort(times)
	t.Logf("%d slow clients; %d pairs of requests of others: median %v, p99 %v", n, len(times), times[len(times)/2], times[len(times)*99/100])
	if n >= 2000 {
		waitCut(bodies)
		t.Logf("all bodies were cut")
	}
}

// pause waits a moment between looks at what changes by itself.
func pause(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(50 * time.Millisecond):
	case <-t.Context().Done():
	}
}

// isCut reports whether the server has closed all connections.
func isCut(list []*slowClient) bool {
	for _, c := range list {
		select {
		case <-c.cut:
		default:
			return false
		}
	}
	return true
}

func waitCut(list []*slowClient) {
	for _, c := range list {
		<-c.cut // until the test times out
	}
}

// TestReplayedAnswersAndRequestsHaveOneEffect sends one answer link, and one signed request, twenty times at once.
func TestReplayedAnswersAndRequestsHaveOneEffect(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, PublicURL: "https://weir.example.org"})
	c := p.anyone("ada")
	run, path := makeLink(t, p, c)
	x := makeTrigger(t, c, `{"name":"orders","flow":"ask","kind":"webhook","payload":"name"}`)
	at := time.Now()
	var mu sync.Mutex
	links, started := map[int]int{}, map[string]bool{}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			a := p.submit(path, map[string][]string{"value": {[]string{"approve", "reject"}[i%2]}})
			b := p.signedRequest(x, "order-1", `"Ada"`, x.Secret, at)
			mu.Lock()
			defer mu.Unlock()
			links[a.status]++
			if b.status != http.StatusAccepted {
				t.Errorf("a request that was sent again: %d %s", b.status, b.body)
			}
			started[b.body] = true
		})
	}
	all.Wait()
	if links[http.StatusOK] != 1 || links[http.StatusOK]+links[http.StatusGone]+links[http.StatusConflict] != 20 {
		t.Errorf("20 answers by one link: %v", links)
	}
	if len(started) != 1 {
		t.Errorf("one request, sent 20 times, has the answers %v", started)
	}
	if got, err := c.Run(t.Context(), run); err != nil || got.Status != "completed" && got.Status != "running" {
		t.Errorf("%+v, %v", got, err)
	}
	if list := p.send(http.MethodGet, "/v1/runs", "", withToken(c.Token)); strings.Count(list.body, `"origin":"webhook:orders"`) != 1 {
		t.Errorf("runs: %s", list.body)
	}
	// A signature counts for its trigger alone. The same id with another body, signed by its owner, starts nothing either.
	other := makeTrigger(t, c, `{"name":"other","flow":"ask","kind":"webhook","payload":"name"}`)
	other.Secret = x.Secret
	if a := p.signedRequest(other, "order-1", `"Ada"`, x.Secret, at); a.status != http.StatusUnauthorized {
		t.Errorf("to another trigger: %d %s", a.status, a.body)
	}
	p.signedRequest(x, "order-1", `"Bob"`, x.Secret, at)
	if list := p.send(http.MethodGet, "/v1/runs", "", withToken(c.Token)); strings.Count(list.body, `"origin":"webhook:orders"`) != 1 {
		t.Errorf("runs after another body: %s", list.body)
	}
}
