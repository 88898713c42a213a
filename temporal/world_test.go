//go:build linux

package temporal_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/postgres"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/temporal"
)

// heartbeat of the tests: a killed worker is noticed after this time.
const heartbeat = 2 * time.Second

// world is a database, a task queue and an outside ledger that processes of a test share.
type world struct {
	t        *testing.T
	address  string
	database string
	queue    string
	ledger   *ledger
	// providers are those of the Weirs that open opens.
	providers map[string]weir.Provider
	// heartbeat is that of processes.
	heartbeat time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	address := needServer(t)
	return &world{
		t: t, address: address, database: filepath.Join(t.TempDir(), "weir.db"),
		queue: strings.ReplaceAll(t.Name(), "/", "-") + "-" + runner.NewID(), ledger: newLedger(t),
		heartbeat: heartbeat,
	}
}

func (w *world) options() temporal.Options {
	return temporal.Options{Address: w.address, TaskQueue: w.queue, Heartbeat: w.heartbeat}
}

func openStore(ctx context.Context, database string) (weir.Store, error) {
	if store.IsURL(database) {
		return postgres.Open(ctx, database, postgres.Options{})
	}
	return sqlite.Open(ctx, database, sqlite.Options{})
}

// open opens a Weir over the database and closes it with the test.
func (w *world) open(o weir.Options) *weir.Weir {
	w.t.Helper()
	var err error
	if o.Store, err = openStore(w.t.Context(), w.database); err != nil {
		w.t.Fatal(err)
	}
	o.Types, o.Providers = types(w.ledger.server.URL), w.providers
	x, err := weir.Open(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = x.Close(context.Background()) })
	return x
}

// client opens a process that has workers execute runs.
func (w *world) client(change ...func(*temporal.Options)) *weir.Weir {
	w.t.Helper()
	o := w.options()
	for _, f := range change {
		f(&o)
	}
	c, err := temporal.Dial(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.open(weir.Options{Runner: c})
}

// worker starts a worker in this process and returns how to stop it.
func (w *world) worker(o temporal.WorkerOptions) (stop func()) {
	w.t.Helper()
	c, err := temporal.Dial(w.t.Context(), w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	if o.Sweep == 0 {
		o.Sweep = 500 * time.Millisecond
	}
	k := temporal.NewWorker(w.open(weir.Options{Executes: temporal.Name}), c, o)
	if err := k.Start(); err != nil {
		w.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		k.Stop()
		_ = c.Close()
	})
	w.t.Cleanup(stop)
	return stop
}

// The environment of a worker process.
const (
	workerRole     = "WEIR_TEST_WORKER" // the address of the server
	workerDatabase = "WEIR_TEST_DATABASE"
	workerQueue    = "WEIR_TEST_QUEUE"
	workerLedger   = "WEIR_TEST_LEDGER"
	workerBeat     = "WEIR_TEST_HEARTBEAT"
)

// process starts a worker as a process of its own, which a test may kill.
func (w *world) process() *exec.Cmd {
	w.t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), workerRole+"="+w.address, workerDatabase+"="+w.database, workerQueue+"="+w.queue, workerLedger+"="+w.ledger.server.URL, workerBeat+"="+w.heartbeat.String())
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { kill(c) })
	return c
}

// kill ends a process as a power failure does.
func kill(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// workerProcess is such a process.
func workerProcess() int {
	ctx := context.Background()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	s, err := openStore(ctx, os.Getenv(workerDatabase))
	if err != nil {
		return fail(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Executes: temporal.Name, Types: types(os.Getenv(workerLedger))})
	if err != nil {
		return fail(err)
	}
	beat, err := time.ParseDuration(os.Getenv(workerBeat))
	if err != nil {
		return fail(err)
	}
	c, err := temporal.Dial(ctx, temporal.Options{
		Address: os.Getenv(workerRole), TaskQueue: os.Getenv(workerQueue), Heartbeat: beat,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return fail(err)
	}
	if err := temporal.NewWorker(w, c, temporal.WorkerOptions{Sweep: time.Second}).Start(); err != nil {
		return fail(err)
	}
	select {}
}

// ledger is the outside world: it counts what effects ask of it, by idempotency key.
type ledger struct {
	server *httptest.Server
	mu     sync.Mutex
	asked  map[string]int
	// inFlight are how many requests of each process are not answered yet, by its id.
	inFlight map[int]int
	// delay is how long it takes to answer; check is called before, nil for nothing.
	delay time.Duration
	check func(run, key string)
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{asked: make(map[string]int), inFlight: make(map[int]int)}
	l.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		l.asked[string(key)]++
		delay, check := l.delay, l.check
		l.mu.Unlock()
		process, _ := strconv.Atoi(r.Header.Get(processHeader))
		l.addInFlight(process, 1)
		defer l.addInFlight(process, -1)
		if run, _, ok := strings.Cut(string(key), "/"); ok && check != nil {
			check(run, string(key))
		}
		pause(r.Context(), delay)
		_, _ = io.WriteString(w, "receipt of "+string(key))
	}))
	t.Cleanup(l.server.Close)
	return l
}

// processHeader has the id of the process that asks.
const processHeader = "X-Process"

func (l *ledger) addInFlight(process, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[process] += n
}

// busy reports how many requests of a process are in flight.
func (l *ledger) busy(process int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight[process]
}

func (l *ledger) setDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

func (l *ledger) setCheck(check func(run, key string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check = check
}

// total is the number of keys that were asked for.
func (l *ledger) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked)
}

// counts returns how often each key was asked for.
func (l *ledger) counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]int, len(l.asked))
	maps.Copy(out, l.asked)
	return out
}

// payIn and payOut are the ports of the node type `pay`.
type payIn struct {
	Value any `json:"value"`
}

type payOut struct {
	Receipt string `json:"receipt"`
}

// types are the node types of the tests: `pay` asks the ledger, as an effect.
func types(url string) []weir.Type {
	return []weir.Type{weir.Func("pay", func(ctx weir.Ctx, _ payIn) (payOut, error) {
		v, err := ctx.Do(node.Effect{Name: "pay", Do: func(c context.Context, key string) (node.Outcome, error) {
			r, err := http.NewRequestWithContext(c, http.MethodPost, url, strings.NewReader(key))
			if err != nil {
				return node.Outcome{}, err
			}
			r.Header.Set(processHeader, strconv.Itoa(os.Getpid()))
			resp, err := new(http.Client).Do(r)
			if err != nil {
				return node.Outcome{}, err
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			return node.Outcome{Value: string(b)}, err
		}})
		text, _ := v.(string)
		return payOut{text}, err
	}), weir.Func("note", func(ctx weir.Ctx, _ payIn) (payOut, error) {
		_, err := ctx.Do(node.Effect{Name: "note", Do: func(context.Context, string) (node.Outcome, error) {
			return node.Outcome{Value: "receipt"}, nil
		}})
		return payOut{"receipt"}, err
	})}
}

// flow parses a flow.
func (w *world) flow(x *weir.Weir, text string, uses ...*weir.Flow) *weir.Flow {
	w.t.Helper()
	f, err := x.Parse("test.yaml", []byte(text), uses...)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// start starts a run.
func (w *world) start(x *weir.Weir, f *weir.Flow, s weir.Start) *weir.Run {
	w.t.Helper()
	r, err := x.Start(w.t.Context(), f, s)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// wait waits until a run rests with a status.
func (w *world) wait(r *weir.Run, want weir.Status) weir.Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	got, err := r.Wait(ctx)
	if err != nil || got.Status != want {
		w.t.Fatalf("run %s: %s, error %v, %v; want %s", r.ID, got.Status, got.Error, err, want)
	}
	return got
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// closeStore closes a store that a test has opened.
func closeStore(t *testing.T, s io.Closer) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// patience bounds a wait for what takes milliseconds on an idle machine.
const patience = 4 * time.Minute

// until waits for a condition.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !ok(); pause(w.t.Context(), 20*time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not after %s: %s", patience, what)
		}
	}
}

// errOnly returns the error of a call that returns a run as well.
func errOnly(_ *weir.Run, err error) error { return err }
