package crash_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/server/client"
)

var (
	serverKills = flag.Int("crash.pgkills", 3, "how often PostgreSQL is killed under servers of Weir")
	serverCuts  = flag.Int("crash.pgcuts", 10, "how many connections to PostgreSQL are cut under servers of Weir")
	prebuilt    = flag.String("crash.pgbinary", "", "the program with the store on PostgreSQL; it is built where none is named")
	servers     = flag.Int("crash.servers", 8, "how many servers of Weir share a database")
)

// TestServersSurviveKillsOfPostgreSQL kills PostgreSQL, all processes at once, while servers of Weir execute runs, rounds of sessions and
// competing answers of clients, each of which sends what failed again, to any of the servers.
func TestServersSurviveKillsOfPostgreSQL(t *testing.T) {
	pg := pgtest.Start(t)
	f := newFleet(t, pg.Schema(t), "")
	f.disturb(*serverKills, func() {
		pg.Kill(t)
		pg.Restart(t)
	})
	f.check(*serverKills)
}

// TestServersSurviveConnectionsThatAreCut cuts connections to PostgreSQL after a random number of bytes, in either direction.
func TestServersSurviveConnectionsThatAreCut(t *testing.T) {
	pg := pgtest.Start(t)
	direct := pg.Schema(t)
	proxy := pgtest.StartProxy(t, pg.Address())
	f := newFleet(t, direct, strings.Replace(direct, pg.Address(), proxy.Address(), 1))
	f.disturb(*serverCuts, func() {
		proxy.Arm(rand.IntN(2) == 0, rand.IntN(5000))
		f.until("a connection is cut", func() bool { return !proxy.Armed() })
	})
	f.check(*serverCuts)
}

// fleet is servers of Weir that share a database, with their clients.
type fleet struct {
	t       *testing.T
	harness *harness
	binary  string
	direct  string // the URL of the database; servers may use another one, through a proxy
	servers []*exec.Cmd
	clients []*client.Client // of the servers
	base    string           // where flows reach the ledger

	progress atomic.Int64 // requests that were acknowledged
	failed   atomic.Int64 // and that were not
	mu       sync.Mutex
	orders   []*order
	visits   map[string][]string // messages by session
}

// order is a run that two clients answer at the same time.
type order struct {
	run string

	mu           sync.Mutex
	acknowledged []int
}

func newFleet(t *testing.T, direct, url string) *fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("short: it builds and starts servers")
	}
	if url == "" {
		url = direct
	}
	f := &fleet{t: t, harness: newHarness(t), direct: direct, visits: make(map[string][]string), binary: binaryForPostgreSQL(t)}
	f.base = "http://" + f.harness.ledger.HTTP + "/shop"
	f.start(url) // it makes the tables
	var all sync.WaitGroup
	var mu sync.Mutex
	for range *servers - 1 {
		all.Go(func() {
			cmd, c := f.startOne(url)
			mu.Lock()
			defer mu.Unlock()
			f.servers, f.clients = append(f.servers, cmd), append(f.clients, c)
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return f
}

// binaryForPostgreSQL builds the program with the store.
func binaryForPostgreSQL(t *testing.T) string {
	t.Helper()
	if *prebuilt != "" {
		return *prebuilt
	}
	path := filepath.Join(t.TempDir(), "weir")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "postgres", "-ldflags=-s -w", "-o", path, "github.com/weir-run/weir/cmd/weir").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func (f *fleet) start(url string) {
	f.t.Helper()
	cmd, c := f.startOne(url)
	if cmd == nil {
		f.t.FailNow()
	}
	f.servers, f.clients = append(f.servers, cmd), append(f.clients, c)
}

// startOne starts a server, and returns when it listens.
func (f *fleet) startOne(url string) (*exec.Cmd, *client.Client) {
	cmd := exec.CommandContext(context.WithoutCancel(f.t.Context()), f.binary, "serve", f.harness.flow("order"), f.harness.flow("visit"), "--addr", "127.0.0.1:0", "--db", url)
	cmd.Env, cmd.Dir = f.harness.env, f.harness.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Error(err)
		return nil, nil
	}
	f.t.Cleanup(func() { _ = cmd.Process.Kill() })
	address, ended := make(chan string, 1), make(chan string, 1)
	go func() {
		var said []string
		for lines := bufio.NewScanner(out); lines.Scan(); {
			said = append(said, lines.Text())
			if _, at, ok := strings.Cut(lines.Text(), " on http://"); ok {
				address <- "http://" + at
			}
		}
		ended <- strings.Join(said, "\n")
	}()
	select {
	case at := <-address:
		return cmd, &client.Client{URL: at, HTTP: &http.Client{Timeout: time.Minute}}
	case said := <-ended:
		f.t.Errorf("a server did not start: %s", said)
	}
	return nil, nil
}

// any returns a client of some server.
func (f *fleet) any() *client.Client { return f.clients[rand.IntN(len(f.clients))] }

// until waits for a condition.
func (f *fleet) until(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); sleep(f.t.Context(), 20*time.Millisecond) {
		if f.t.Failed() || time.Now().After(end) {
			f.t.Fatalf("not after three minutes: %s", what)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// disturb has clients work until something was done so often, each time after some more requests.
func (f *fleet) disturb(times int, do func()) {
	const workers, sessions = 8, 3
	done := make(chan struct{})
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { f.work(done, func(n int) { f.order(fmt.Sprintf("order-%d-%d", i, n)) }) })
	}
	for range sessions {
		var id string
		f.insist("open a session", func() (err error) { id, err = f.any().OpenSession(f.t.Context(), "visit", ""); return err })
		for i := range 2 {
			all.Go(func() { f.work(done, func(n int) { f.visit(id, fmt.Sprintf("%s %d-%d", id, i, n)) }) })
		}
	}
	for range times {
		before, more := f.progress.Load(), int64(5+rand.IntN(40))
		f.until("clients make progress", func() bool { return f.progress.Load() >= before+more })
		do()
	}
	close(done)
	all.Wait()
}

// work does one thing after another until done is closed.
func (f *fleet) work(done chan struct{}, do func(n int)) {
	for n := 0; !f.t.Failed(); n++ {
		select {
		case <-done:
			return
		default:
			do(n)
		}
	}
}

// insist sends a request, each time to any of the servers, until it is acknowledged. A refusal fails the test.
func (f *fleet) insist(what string, send func() error) {
	var err error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); sleep(f.t.Context(), 50*time.Millisecond) {
		if err = send(); err == nil {
			f.progress.Add(1)
			return
		}
		f.failed.Add(1)
		if e, ok := errors.AsType[*client.Error](err); ok && e.Status < http.StatusInternalServerError {
			break
		}
	}
	f.t.Errorf("%s: %v", what, err)
}

// order starts a run, has two clients answer its question and waits for its end.
func (f *fleet) order(key string) {
	o := &order{}
	f.insist("start "+key, func() error {
		r, err := f.any().StartRun(f.t.Context(), client.Start{Flow: "order", Inputs: map[string]any{"base": f.base}, Key: key})
		if err == nil {
			o.run = r.ID
		}
		return err
	})
	if f.t.Failed() {
		return
	}
	f.mu.Lock()
	f.orders = append(f.orders, o)
	f.mu.Unlock()
	f.waitFor(o.run, "paused")
	var both sync.WaitGroup
	for amount := range 2 {
		both.Go(func() { f.answer(o, amount) })
	}
	both.Wait()
	f.waitFor(o.run, "completed")
}

// waitFor polls a run until it has a status.
func (f *fleet) waitFor(run, status string) {
	var last string
	for end := time.Now().Add(3 * time.Minute); !f.t.Failed() && time.Now().Before(end); sleep(f.t.Context(), 50*time.Millisecond) {
		f.insist("read "+run, func() error {
			r, err := f.any().Run(f.t.Context(), run)
			if err == nil {
				last = r.Status
			}
			return err
		})
		if last == status {
			return
		}
	}
	f.t.Errorf("run %s is %s, want %s", run, last, status)
}

// answer answers the question of a run until the answer is acknowledged, or the run has another one. Only 200 says that this answer has won.
func (f *fleet) answer(o *order, amount int) {
	var last string
	for end := time.Now().Add(3 * time.Minute); !f.t.Failed() && time.Now().Before(end); sleep(f.t.Context(), 50*time.Millisecond) {
		code, text := f.post("/v1/runs/"+o.run+"/answer?wait=5", map[string]any{"interrupt": "ask:ask#1", "value": amount})
		last = fmt.Sprintf("%d %s", code, text)
		if code == http.StatusOK {
			f.progress.Add(1)
			o.mu.Lock()
			defer o.mu.Unlock()
			o.acknowledged = append(o.acknowledged, amount)
			return
		}
		if code == http.StatusConflict {
			return
		}
		f.failed.Add(1)
	}
	f.t.Errorf("answer %d to %s: %s", amount, o.run, last)
}

// post sends a request to any server and returns the status of the answer, 0 if there is none.
func (f *fleet) post(path string, body any) (int, string) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, err.Error()
	}
	c := f.any()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, c.URL+path, bytes.NewReader(b))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, text.String()
}

// visit sends a message to a session.
func (f *fleet) visit(session, text string) {
	f.insist("send "+text, func() error {
		_, err := f.any().Send(f.t.Context(), session, client.Message{Text: text, Inputs: map[string]any{"base": f.base}, Key: text, Wait: 2})
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.visits[session] = append(f.visits[session], text)
}
