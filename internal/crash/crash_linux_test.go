package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-run/weir/internal/crash"
)

var (
	points = flag.Int("crash.n", 64, "how many kill points")
	stops  = flag.Int("crash.stops", 14, "how many points for each signal that asks a process to stop")
	of     = flag.String("crash.of", "", "the one scenario that is killed; all where none is named")
	only   = flag.String("crash.point", "", "one kill point alone, as a failure prints it: SCENARIO:STEP[,STEP...]")
)

// shortPoints is how many there are at most with -short: the race detector does
// not look into the binary.
const shortPoints = 24

// ledgerVariable makes the test binary the ledger, writing to the folder that
// it names.
const ledgerVariable = "WEIR_CRASH_LEDGER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ledgerVariable); dir != "" {
		os.Exit(ledger(dir))
	}
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is the folder of the binary that all tests kill.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// binary returns the path of the binary, which the first test builds.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() { built.dir, built.err = buildBinary() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "weir")
}

func buildBinary() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "weir-crash-"); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "weir"), "github.com/weir-run/weir/cmd/weir")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build: %w\n%s", err, out)
	}
	return dir, nil
}

// ledger runs until its stdin ends.
func ledger(dir string) int {
	l, err := crash.StartLedger(context.Background(), dir)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(l.Addresses())
	}
	if err == nil {
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// harness is what all journeys share.
type harness struct {
	binary   string
	flows    string
	dir      string
	asks     string // where the ledger writes
	database string // one that holds a run already
	ledger   crash.Addresses
	env      []string
}

func (r *harness) flow(name string) string { return filepath.Join(r.flows, name+".yaml") }

// newHarness starts the ledger.
func newHarness(t *testing.T) *harness {
	t.Helper()
	flows, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := &harness{flows: flows, dir: dir, asks: filepath.Join(dir, "asks"), binary: binary(t)}
	if err := os.Mkdir(r.asks, 0o700); err != nil {
		t.Fatal(err)
	}
	r.startLedger(t)
	config := fmt.Sprintf("providers: {ledger: {baseURL: %q, api: chat}}\nhttp: {allowPrivate: [%q]}\n", r.ledger.Model, r.ledger.HTTP) + r.tools()
	home := filepath.Join(dir, "config", "weir")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = []string{"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "HOME=" + dir, "USER=crash"}
	return r
}

// tools returns the part of the configuration that offers tools: a flow, and a request that must not be repeated blindly.
func (r *harness) tools() string {
	return fmt.Sprintf(`tools:
  flows: [{name: helper, file: %q}]
  http:
    - name: note
      description: Takes a note.
      method: POST
      url: "http://%s/tools/note"
      parameters: {type: object, properties: {who: {type: string}}, required: [who]}
`, r.flow("helper"), r.ledger.HTTP)
}

// startLedger starts this binary as the ledger.
func (r *harness) startLedger(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // it ends with its stdin
	cmd.Env = append(os.Environ(), ledgerVariable+"="+r.asks)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(out).Decode(&r.ledger); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the ledger: %v", err)
		}
	})
}

// newTrial returns a new run of a scenario.
func (r *harness) newTrial(way scenario, run string, kills ...int) *trial {
	return &trial{harness: r, scenario: way, run: run, dir: filepath.Join(r.dir, run), kills: kills, with: syscall.SIGKILL}
}

// baselines makes the undisturbed run of each of the scenarios, all where none is named,
// which says how many steps there are and what the outputs must be. The first leaves the
// database that others begin with.
func (r *harness) baselines(t *testing.T, names ...string) []*trial {
	t.Helper()
	var out []*trial
	for _, way := range scenarios() {
		if len(names) == 0 || slices.Contains(names, way.name) || way.fresh {
			out = append(out, r.newTrial(way, "calm-"+way.name))
		}
	}
	failures := make([]error, len(out))
	failures[0] = out[0].runWithoutKills(t)
	r.database = out[0].db()
	var all sync.WaitGroup
	for i := 1; i < len(out); i++ {
		all.Go(func() { failures[i] = out[i].runWithoutKills(t) })
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	return out
}

// runWithoutKills makes a journey without kills.
func (j *trial) runWithoutKills(tb testing.TB) error {
	tb.Helper()
	err := j.runToCompletion(tb)
	if err == nil {
		err = j.check(tb, nil)
	}
	if err == nil && len(j.last.Outputs) < 10 {
		err = fmt.Errorf("the outputs are %s", j.last.Outputs)
	}
	if err != nil {
		return fmt.Errorf("%s, undisturbed: %w", j.scenario.name, err)
	}
	return nil
}

// point is where one journey's process is killed.
type point struct {
	scenario int
	kills    []int
}

// plan makes n points: four of five, as long as there are steps, kill once and
// are spread evenly over all steps of all scenarios; the others kill two or
// three times, by a fixed seed. Scenarios that leave does not want are left out.
func plan(undisturbed []*trial, n int, leave func(scenario) bool) []point {
	var all []point
	var ways []int
	for s, j := range undisturbed {
		if leave(j.scenario) {
			continue
		}
		ways = append(ways, s)
		for k := range j.seen {
			all = append(all, point{s, []int{k + 1}})
		}
	}
	single := min(n-n/5, len(all))
	out := make([]point, 0, n)
	for i := range single {
		out = append(out, all[i*len(all)/single])
	}
	for i := single; i < n; i++ {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		p := point{scenario: ways[r.IntN(len(ways))]}
		for range 2 + r.IntN(2) {
			p.kills = append(p.kills, 1+r.IntN(undisturbed[p.scenario].seen))
		}
		out = append(out, p)
	}
	return out
}

func (p point) String() string {
	return scenarios()[p.scenario].name + ":" + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.kills), " ", ","), "[]")
}

func parsePoint(s string) (point, error) {
	name, steps, _ := strings.Cut(s, ":")
	p := point{scenario: -1}
	for i, way := range scenarios() {
		if way.name == name {
			p.scenario = i
		}
	}
	for k := range strings.SplitSeq(steps, ",") {
		n, err := strconv.Atoi(k)
		if err != nil || p.scenario < 0 {
			return p, fmt.Errorf("-crash.point %s: expected SCENARIO:STEP[,STEP...]", s)
		}
		p.kills = append(p.kills, n)
	}
	return p, nil
}

func TestRunSurvivesKillAtEveryWrite(t *testing.T) {
	r := newHarness(t)
	undisturbed := r.baselines(t)
	c := &campaign{rig: r, baselines: undisturbed, signal: syscall.SIGKILL, begin: time.Now(), table: make([]row, len(undisturbed))}
	n := *points
	if testing.Short() {
		n = min(n, shortPoints)
	}
	list := plan(undisturbed, n, func(way scenario) bool { return *of != "" && *of != way.name })
	if *only != "" {
		p, err := parsePoint(*only)
		if err != nil {
			t.Fatal(err)
		}
		list = []point{p}
	}
	c.run(t, list)
	t.Log(c.String())
}

// workers returns how many journeys are under way at once; they wait for their
// timers part of the time.
func workers() int { return 2 * runtime.NumCPU() }

// campaign kills and counts.
type campaign struct {
	rig       *harness
	baselines []*trial
	signal    syscall.Signal
	begin     time.Time

	mu     sync.Mutex
	points int
	table  []row // by scenario
}

// row is what a campaign has counted of a scenario.
type row struct {
	points, failed, kills, asks, again int
	at                                 [4]int // kills by kind of step
}

func (c *campaign) run(t *testing.T, list []point) {
	t.Helper()
	work := make(chan int)
	var all sync.WaitGroup
	for range workers() {
		all.Go(func() {
			for i := range work {
				c.point(t, i, list[i])
			}
		})
	}
	for i := range list {
		work <- i
	}
	close(work)
	all.Wait()
}

// point makes one journey.
func (c *campaign) point(t *testing.T, i int, p point) {
	t.Helper()
	j := c.rig.newTrial(scenarios()[p.scenario], fmt.Sprintf("%d-%d", c.signal, i), p.kills...)
	j.with = c.signal
	err := j.runToCompletion(t)
	if err == nil {
		err = j.check(t, c.baselines[p.scenario])
	}
	c.count(p, j, err)
	if err != nil {
		t.Errorf("killed before %v: %v\n  again: go test ./internal/crash -run KillAtEveryWrite -crash.point %s", j.killed, err, p)
		return
	}
	if err := os.RemoveAll(j.dir); err != nil {
		t.Error(err)
	}
}

func (c *campaign) count(p point, j *trial, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.table[p.scenario]
	r.points++
	if err != nil {
		r.failed++
	} else {
		r.asks += len(j.known.asks)
		r.again += j.known.repeatedAsks()
	}
	for _, s := range j.killed {
		r.kills++
		r.at[s.Kind]++
	}
	if c.points++; c.points%500 == 0 {
		fmt.Fprintf(os.Stderr, "%d points, %s\n", c.points, time.Since(c.begin).Round(time.Second))
	}
}

// String returns the final table.
func (c *campaign) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d kill points in %s\n", c.points, time.Since(c.begin).Round(time.Second/10))
	fmt.Fprintf(&b, "%-9s %6s %7s %6s %8s %6s %8s %7s %6s %6s %7s\n",
		"scenario", "steps", "points", "kills", "journal", "sync", "network", "output", "asks", "again", "failed")
	for i, r := range c.table {
		fmt.Fprintf(&b, "%-9s %6d %7d %6d %8d %6d %8d %7d %6d %6d %7d\n", scenarios()[i].name, c.baselines[i].seen, r.points, r.kills,
			r.at[crash.Journal], r.at[crash.Sync], r.at[crash.Network], r.at[crash.Output], r.asks, r.again, r.failed)
	}
	return b.String()
}
