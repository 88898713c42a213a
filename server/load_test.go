package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

var (
	loadTime  = flag.Duration("load.time", 3*time.Second, "how long the server is under load before it is killed")
	loadRuns  = flag.Int("load.runs", 20, "runs at once, each with two readers that follow it live")
	loadKills = flag.Int("load.kills", 2, "how often the server is killed with SIGKILL under load")
)

// loadDir names the folder in which TestLoadProcess serves; without it, that test is none.
const loadDir = "WEIR_TEST_LOAD_DIR"

const loadFlow = `weir: 1
name: work
context: {model: fake/m}
inputs: {text: {type: text, required: true}}
nodes:
  first: {type: llmRequest, in: {message: "{{ run.inputs.text }}"}}
  second: {type: llmRequest, after: first, in: {message: And then?}}
  third: {type: llmRequest, after: second, in: {message: And then?}}
outputs: {text: "{{ first.text }}, {{ second.text }}, {{ third.text }}"}
`

// TestLoadProcess is the server of TestNothingIsLostUnderLoad. It prints its address, and every second what it holds, until it is killed.
func TestLoadProcess(t *testing.T) { //nolint:paralleltest // it is a process of its own
	dir := os.Getenv(loadDir)
	if dir == "" {
		t.Skip("it is started by TestNothingIsLostUnderLoad")
	}
	p := openProcess(t, dir, server.Options{})
	fmt.Println("address", strings.TrimPrefix(p.url, "http://"))
	for {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println("sample", runtime.NumGoroutine(), m.HeapAlloc>>10)
		select {
		case <-time.After(time.Second):
		case <-t.Context().Done():
			return
		}
	}
}

// load is a server under load.
type load struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	at     atomic.Pointer[string] // the address of the server
	client *client.Client
	ended  atomic.Int64 // runs

	mu         sync.Mutex // guards what follows
	reads      []time.Duration
	goroutines []int
	heap       []int // in KiB
	events     int
}

// start starts the server, and returns when it listens.
func (l *load) start() {
	l.t.Helper()
	l.cmd = exec.CommandContext(l.t.Context(), os.Args[0], "-test.run", "^TestLoadProcess$", "-test.v", "-test.timeout", "0")
	l.cmd.Env = append(os.Environ(), loadDir+"="+l.dir)
	l.cmd.Stderr = os.Stderr
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	listens, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		var others []string
		defer func() { ended <- strings.Join(others, "\n") }()
		for lines.Scan() {
			switch f := strings.Fields(lines.Text()); {
			case len(f) == 2 && f[0] == "address":
				l.at.Store(&f[1])
				close(listens)
			case len(f) == 3 && f[0] == "sample":
				l.sample(f[1], f[2])
			default:
				others = append(others, lines.Text())
			}
		}
	}()
	select {
	case <-listens:
	case text := <-ended:
		l.t.Fatal("the server did not start: " + text)
	}
}

func (l *load) sample(goroutines, heap string) {
	n, err := strconv.Atoi(goroutines)
	kib, err2 := strconv.Atoi(heap)
	if err = errors.Join(err, err2); err != nil {
		l.t.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goroutines, l.heap = append(l.goroutines, n), append(l.heap, kib)
}

// kill ends the server with SIGKILL and starts it again.
func (l *load) kill() {
	l.t.Helper()
	if err := l.cmd.Process.Kill(); err != nil {
		l.t.Error(err)
	}
	_ = l.cmd.Wait() // it was killed
	l.start()
}

// again calls f until it succeeds. An answer of the server that is not one of being unavailable fails the test.
func (l *load) again(what string, f func() error) bool {
	for {
		err := f()
		if err == nil {
			return true
		}
		if e, ok := errors.AsType[*client.Error](err); ok && e.Status < http.StatusInternalServerError {
			l.t.Errorf("%s: %v", what, err)
			return false
		}
		if l.t.Context().Err() != nil {
			return false
		}
		pause(l.t)
	}
}

// work starts one run after another, each followed by two readers from its beginning, until done is closed.
func (l *load) work(worker int, done chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		start := client.Start{Flow: "work", Inputs: map[string]any{"text": fmt.Sprint(worker, " ", i)}, Key: fmt.Sprint(worker, "-", i)}
		var run *client.Run
		if !l.again("start", func() (err error) { run, err = l.client.StartRun(l.t.Context(), start); return err }) {
			return
		}
		var readers sync.WaitGroup
		seen := make([][]int64, 2)
		for r := range seen {
			readers.Go(func() { seen[r] = l.follow(run.ID) })
		}
		l.read(run.ID)
		readers.Wait()
		l.check(run.ID, start, seen)
		l.ended.Add(1)
	}
}

// follow reads the stream of a run until it ends, and returns the numbers of the events.
func (l *load) follow(run string) (seen []int64) {
	for e, err := range l.client.Stream(l.t.Context(), run, "") {
		var data struct{ Number int64 }
		if err == nil {
			err = json.Unmarshal(e.Data, &data)
		}
		if err != nil {
			l.t.Errorf("stream of %s: %v", run, err)
			return seen
		}
		if data.Number > 0 {
			seen = append(seen, data.Number)
		}
	}
	return seen
}

// read measures one read of a run.
func (l *load) read(run string) {
	begin := time.Now()
	if _, err := l.client.Run(l.t.Context(), run); err != nil {
		return // the server was killed; follow reports what is wrong
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads = append(l.reads, time.Since(begin))
}

// check requires that a run has completed, that its readers have seen each event once and in order, and that its start sent again is the same run.
func (l *load) check(run string, start client.Start, seen [][]int64) {
	var page struct{ Events []struct{ Number int64 } }
	if !l.again("events", func() error {
		return l.client.Do(l.t.Context(), http.MethodGet, "/v1/runs/"+run+"/events?limit=1000", nil, &page)
	}) {
		return
	}
	var all []int64
	for _, e := range page.Events {
		all = append(all, e.Number)
	}
	for _, got := range seen {
		if len(all) == 0 || !slices.Equal(got, all) {
			l.t.Errorf("run %s: a reader has %v of the events %v", run, got, all)
		}
	}
	var same *client.Run
	if !l.again("the start again", func() (err error) { same, err = l.client.StartRun(l.t.Context(), start); return err }) {
		return
	}
	if same.ID != run || same.Status != "completed" || strings.Count(fmt.Sprint(same.Outputs["text"]), "answer") != 3 {
		l.t.Errorf("run %s: %+v", run, same)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events += len(all)
}

// until waits until more runs have ended.
func (l *load) until(more int64) {
	for end := l.ended.Load() + more; l.ended.Load() < end && !l.t.Failed(); {
		pause(l.t)
	}
}

// checkFlat compares what the server held in the last third of the time with the first third after its start.
func (l *load) checkFlat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	third := len(l.heap) / 3
	if third == 0 {
		return
	}
	early, late := slices.Max(l.goroutines[:third+1]), slices.Max(l.goroutines[2*third:])
	least, most := slices.Max(l.heap[:third+1]), slices.Min(l.heap[2*third:])
	l.t.Logf("goroutines: at most %d in the first third of the time, %d in the last; heap: at most %d KiB, at least %d KiB", early, late, least, most)
	if late > 2*early+200 {
		l.t.Errorf("goroutines have grown from %d to %d", early, late)
	}
	if most > 2*least+64<<10 {
		l.t.Errorf("the heap has grown from %d KiB to %d KiB", least, most)
	}
}

// logReads logs how long reads have taken so far.
func (l *load) logReads() {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.reads)
	if n := len(l.reads); n > 0 {
		l.t.Logf("%d runs and %d readers at once for %v: %d runs, %d events; reads: median %v, p99 %v",
			*loadRuns, 2**loadRuns, *loadTime, l.ended.Load(), l.events, l.reads[n/2], l.reads[n*99/100])
	}
}

// TestNothingIsLostUnderLoad has many runs at once with two live readers each. After a time without disturbance, in which memory and goroutines do
// not grow, the server is killed and started again, under the same load, several times. Each run that was acknowledged completes, and each reader
// has each event once.
func TestNothingIsLostUnderLoad(t *testing.T) { //nolint:paralleltest // its load would slow others down
	if testing.Short() {
		*loadTime, *loadRuns, *loadKills = time.Second, 5, 1
	}
	l := &load{t: t, dir: t.TempDir()}
	model := llmtest.Start()
	t.Cleanup(model.Close)
	model.Answer(func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: "an answer"} })
	for name, text := range map[string]string{"work.yaml": loadFlow, "config.yaml": "providers:\n  fake: {type: openai-compatible, baseURL: " + model.URL + "}\n"} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, *l.at.Load())
	}
	l.client = &client.Client{URL: "http://localhost", HTTP: &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 1000}}}
	l.start()
	t.Cleanup(func() {
		_ = l.cmd.Process.Kill()
		_ = l.cmd.Wait() // it was killed
	})
	done := make(chan struct{})
	var workers sync.WaitGroup
	for i := range *loadRuns {
		workers.Go(func() { l.work(i, done) })
	}
	select {
	case <-time.After(*loadTime):
	case <-t.Context().Done():
	}
	l.until(int64(*loadRuns))
	l.checkFlat()
	l.logReads()
	for range *loadKills {
		l.until(int64(max(1, *loadRuns/5))) // some progress, so that no run is taken for one that ends its process
		l.kill()
	}
	close(done)
	workers.Wait()
	t.Logf("killed %d times: %d runs, %d events, none lost", *loadKills, l.ended.Load(), l.events)
}
