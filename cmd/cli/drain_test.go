package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// noticing is a writer for a command, and reports when the command says that it is stopping.
type noticing struct {
	mu       sync.Mutex
	buf      bytes.Buffer
	once     sync.Once
	stopping chan struct{}
}

func (n *noticing) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buf.Write(b)
	if strings.Contains(n.buf.String(), "topping") {
		n.once.Do(func() { close(n.stopping) })
	}
	return len(b), nil
}

// answersWhileStopping returns a server whose first request stops the program. It answers once
// the program has said that it is stopping, or, where ends is false, when the request is
// cancelled. It reports whether the client was still there.
func answersWhileStopping(stop func(), ends bool, stopping <-chan struct{}, ended chan<- bool) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stop()
		if ends {
			<-stopping
		} else {
			<-r.Context().Done()
		}
		_, err := w.Write([]byte("here"))
		ended <- err == nil && r.Context().Err() == nil
	}))
}

// TestSIGTERMLetsRequestsInFlightEndAndCtrlCDoesNot: what ended is kept, and not asked
// for again when the run is continued.
func TestSIGTERMLetsRequestsInFlightEndAndCtrlCDoesNot(t *testing.T) {
	t.Parallel()
	for sig, ends := range map[syscall.Signal]bool{syscall.SIGTERM: true, syscall.SIGINT: false} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			errs := &noticing{stopping: make(chan struct{})}
			ctx, stop := context.WithCancelCause(t.Context())
			ended := make(chan bool, 9)
			server := answersWhileStopping(func() { stop(&errSignal{sig}) }, ends, errs.stopping, ended)
			defer server.Close()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			flow := write("f.yaml", "weir: 1\nname: f\nnodes:\n  get: {type: httpRequest, with: {url: \""+server.URL+"\"}}\n  after: {type: wait, after: get, with: {for: 10m}}\n")
			config := write("config.yaml", "drain: 1m\nhttp: {allowPrivate: [127.0.0.1]}\n")
			var out bytes.Buffer
			db := filepath.Join(dir, "weir.db")
			p := &cli{terminal: terminal{in: strings.NewReader(""), out: &out, err: errs}, env: func(string) (string, bool) { return "", false }}
			if code := p.command(ctx, []string{"--db", db, "--config", config, "run", flow, "--id", "r"}); code != 128+int(sig) {
				t.Errorf("exit %d: %s%s", code, out.String(), errs.buf.String())
			}
			if got := <-ended; got != ends {
				t.Errorf("the request ended by itself: %v, expected %v", got, ends)
			}
			_, events, _ := inProcess(t, db, "show r --events")
			if kept := strings.Contains(events, `"effect.completed"`) || strings.Contains(events, `"node.completed"`); kept != ends {
				t.Errorf("the result is kept: %v, expected %v: %s", kept, ends, events)
			}
		})
	}
}
