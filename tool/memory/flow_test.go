package memorytool_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
	memstore "github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/store/storetest"
	"github.com/weir-run/weir/tool"
	memorytool "github.com/weir-run/weir/tool/memory"
)

const deskFlow = `
weir: 1
name: desk
context: {model: obedient/m}
inputs: {message: {type: text, required: true}}
nodes:
  memory: {type: tools, with: {tools: [identifyUser, memoryRead, memoryWrite, memoryForget]}}
  answer: {type: agent, in: {message: "{{ run.inputs.message }}", tools: "{{ memory.tools }}"}}
outputs: {answer: "{{ answer.text }}"}
`

// obedient calls what each line of the message says, "NAME ARGUMENTS", one call
// after the other, and then repeats the results.
type obedient struct{}

func (obedient) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	asked := 0
	for i, m := range req.Messages {
		if m.Role == convo.User {
			asked = i
		}
	}
	var done []string
	for _, m := range req.Messages[asked+1:] {
		if m.Role == convo.Tool {
			done = append(done, m.Text)
		}
	}
	orders := strings.Split(strings.TrimSpace(req.Messages[asked].Text), "\n")
	if len(done) == len(orders) {
		return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: strings.Join(done, "\n")}}, nil
	}
	name, arguments, _ := strings.Cut(orders[len(done)], " ")
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Calls: []convo.Call{
		{ID: fmt.Sprint("c", len(done)), Name: name, Arguments: arguments},
	}}}, nil
}

// keeper is what a store does for these tests.
type keeper interface {
	weir.Store
	storetest.Memory
}

// failing is a store that takes so many commits of runs and no more, as if the
// process had died.
type failing struct {
	keeper
	mu   sync.Mutex
	left int
}

var errDied = errors.New("the process died")

func (f *failing) Append(ctx context.Context, appends []store.Append) []error {
	f.mu.Lock()
	f.left--
	dead := f.left < 0
	f.mu.Unlock()
	if dead {
		return slices.Repeat([]error{errDied}, len(appends))
	}
	return f.keeper.Append(ctx, appends)
}

// many is more commits than these tests make.
const many = 1 << 20

// testWeir is a Weir over a file, with its store.
type testWeir struct {
	*weir.Weir
	*weir.Flow
	store *failing
}

func openWeir(t *testing.T, file string, left int, change func([]*tool.Tool)) testWeir {
	t.Helper()
	s, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return weirOver(t, s, left, change)
}

// lasting is a store in memory that outlives the process it is closed by.
type lasting struct{ *memstore.Store }

func (lasting) Close() error { return nil }

func weirOver(t *testing.T, s keeper, left int, change func([]*tool.Tool)) testWeir {
	t.Helper()
	clock := sync.OnceValue(time.Now)() // every write of an episode has a time of its own
	var mu sync.Mutex
	tools, err := memorytool.Tools(s, memorytool.Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		clock = clock.Add(time.Second)
		return clock
	}})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(tools)
	}
	d := testWeir{store: &failing{keeper: s, left: left}}
	d.Weir, err = weir.Open(weir.Options{Store: d.store, Tools: tools, Providers: map[string]weir.Provider{"obedient": obedient{}}})
	if err != nil {
		t.Fatal(err)
	}
	d.Flow, err = d.Parse("desk.yaml", []byte(deskFlow))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// say sends a message to a user's session of that thread, and returns the answer.
func (d testWeir) say(t *testing.T, user, thread, message string) string {
	t.Helper()
	s, err := d.Weir.Session(t.Context(), d.Flow, weir.SessionOptions{User: user, Thread: thread})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := s.Send(t.Context(), message, weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := turn.Wait(t.Context())
	if err != nil || r.Status != engine.Completed {
		t.Fatalf("%s %v (%v)", r.Status, r.Error, err)
	}
	return fmt.Sprint(r.Outputs[0].Value)
}

func (d testWeir) close(t *testing.T) {
	t.Helper()
	if err := d.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func has(t *testing.T, said string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		without, not := strings.CutPrefix(p, "!")
		if strings.Contains(said, without) == not {
			t.Errorf("%q against %q", said, p)
		}
	}
}

func TestWhatOneSessionWritesTheNextOfTheUserReadsAndNobodyElse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.db")
	d := openWeir(t, file, many, nil)
	has(t, d.say(t, "ada", "one", `memoryWrite {"kind": "fact", "key": "diet", "text": "vegetarian, 喜欢豆腐"}`), "Remembered as")
	d.close(t)

	d = openWeir(t, file, many, nil)
	defer d.close(t)
	has(t, d.say(t, "ada", "two", `memoryRead {"query": "豆腐 or meat?"}`), "vegetarian")
	has(t, d.say(t, "ada", "two", "identifyUser {}"), `{"user":"ada"}`, "vegetarian")
	has(t, d.say(t, "bert", "one", "memoryRead {}\nidentifyUser {}"), "Nothing that is remembered fits.", `{"user":"bert"}`, "!vegetarian")
	has(t, d.say(t, "", "one", "identifyUser {}\n"+`memoryRead {"query": "I am ada. My diet?"}`), "has not said who", "Nothing that is remembered fits.")
	has(t, d.say(t, "", "two", `memoryWrite {"kind": "fact", "text": "claims to be ada"}`+"\nmemoryRead {}"), "claims to be ada")
	has(t, d.say(t, "", "one", "memoryRead {}"), "Nothing")
	has(t, d.say(t, "ada", "one", "memoryRead {}"), "1 remembered item fits", "!claims")

	list, err := d.store.Memories(t.Context(), memory.Filter{User: "ada"})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if x := list[0].Source; x.Run == "" || x.Session == "" || x.Round != 1 || x.Flow != "desk" || x.By != "model" {
		t.Errorf("it came from %+v", x)
	}
	gone, err := d.DeleteUser(t.Context(), "ada", store.DeleteOptions{})
	if err != nil || gone.Memories != 1 || gone.Sessions != 2 {
		t.Errorf("%+v (%v)", gone, err)
	}
	has(t, d.say(t, "ada", "one", "memoryRead {}"), "Nothing")
}

func TestRunWithoutUserOrSessionHasNoMemory(t *testing.T) {
	d := openWeir(t, filepath.Join(t.TempDir(), "weir.db"), many, nil)
	defer d.close(t)
	run, err := d.Start(t.Context(), d.Flow, weir.Start{Inputs: map[string]any{"message": `memoryWrite {"kind": "fact", "text": "x"}`}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error, err)
	}
	has(t, fmt.Sprint(r.Outputs[0].Value), "no user and no session")
	run, err = d.Start(t.Context(), d.Flow, weir.Start{User: "ada", Inputs: map[string]any{"message": `memoryWrite {"kind": "fact", "text": "x"}`}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = run.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error, err)
	}
	has(t, fmt.Sprint(r.Outputs[0].Value), "Remembered as")
}

// TestCrashAtAnyCommitStoresMemoryOnce has a process die at
// each commit of a run that remembers, replaces and forgets, also right behind a
// write and before it is recorded; another continues.
func TestCrashAtAnyCommitStoresMemoryOnce(t *testing.T) {
	orders := strings.Join([]string{
		`memoryWrite {"kind": "episode", "text": "called"}`,
		`memoryWrite {"kind": "fact", "key": "mood", "text": "calm"}`,
		`memoryWrite {"kind": "fact", "key": "mood", "text": "cheerful"}`,
		`memoryForget {"id": "nothing"}`,
		`memoryWrite {"kind": "episode", "text": "called"}`,
		`memoryRead {}`,
	}, "\n")
	died, repeated := 0, 0
	for done := false; !done; died++ {
		file, kept := filepath.Join(t.TempDir(), "weir.db"), lasting{memstore.New()}
		calls := &counting{}
		process := func(left int) testWeir {
			if died%4 == 3 { // these take their time
				return openWeir(t, file, left, calls.wrap)
			}
			return weirOver(t, kept, left, calls.wrap)
		}
		done = dies(t, process(died+1), orders)
		second := process(many)
		if !done {
			has(t, resumed(t, second), "version 2", `nothing of this user is remembered`, "3 remembered items fit")
		}
		list, err := second.store.Memories(t.Context(), memory.Filter{})
		if err != nil || len(list) != 3 {
			t.Errorf("died at %d: %d items (%v)", died, len(list), err)
		}
		for i := range list {
			if list[i].Key == "mood" && list[i].Number != 2 {
				t.Errorf("died at %d: version %d of the mood", died, list[i].Number)
			}
		}
		repeated += calls.repeated()
		second.close(t)
	}
	if died < 8 || repeated < 3 {
		t.Errorf("the run has %d commits to die at, and %d calls were made again: expected more", died, repeated)
	}
}

// dies starts the run "run" in a process that may die, and reports whether it did
// not.
func dies(t *testing.T, d testWeir, orders string) bool {
	t.Helper()
	run, err := d.Start(t.Context(), d.Flow, weir.Start{ID: "run", User: "ada", Inputs: map[string]any{"message": orders}})
	if err == nil {
		_, err = run.Wait(t.Context())
	}
	if closed := d.Close(t.Context()); err == nil && closed != nil {
		t.Error(closed)
	}
	return err == nil
}

// resumed has another process continue the run, and returns its answer; no person
// may be asked anything.
func resumed(t *testing.T, d testWeir) string {
	t.Helper()
	run, err := d.Resume(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Status != engine.Completed {
		t.Fatalf("%s %v (%v)", r.Status, r.Error, err)
	}
	return fmt.Sprint(r.Outputs[0].Value)
}

// counting counts calls by their keys.
type counting struct {
	mu   sync.Mutex
	keys map[string]int
}

func (c *counting) wrap(list []*tool.Tool) {
	for _, x := range list {
		if !x.Idempotent {
			continue
		}
		call := x.Call
		x.Call = func(ctx context.Context, made tool.Call) (string, error) {
			c.mu.Lock()
			if c.keys == nil {
				c.keys = map[string]int{}
			}
			c.keys[made.Key]++
			c.mu.Unlock()
			return call(ctx, made)
		}
	}
}

func (c *counting) repeated() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, times := range c.keys {
		n += times - 1
	}
	return n
}

func TestAgentsOfOneUserRememberAtOnce(t *testing.T) {
	d := openWeir(t, filepath.Join(t.TempDir(), "weir.db"), many, nil)
	defer d.close(t)
	const writers = 8
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			orders := fmt.Sprintf("memoryWrite {\"kind\": \"episode\", \"text\": \"writer %d\"}\nmemoryWrite {\"kind\": \"fact\", \"key\": \"last\", \"text\": \"%d was here\"}\nmemoryRead {\"query\": \"writer\"}", n, n)
			run, err := d.Start(t.Context(), d.Flow, weir.Start{User: "ada", Inputs: map[string]any{"message": orders}})
			if err != nil {
				t.Error(err)
				return
			}
			if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Completed {
				t.Error(r.Status, r.Error, err)
			}
		})
	}
	wg.Wait()
	found, err := d.store.Recall(t.Context(), memory.Query{Scope: memory.Scope{Namespace: "desk", User: "ada"}, Limit: 100})
	if err != nil || found.Total != writers+1 {
		t.Fatal(found.Total, err)
	}
	for i := range found.Items {
		if x := found.Items[i]; x.Key == "last" && x.Number != writers {
			t.Errorf("version %d of what all wrote", x.Number)
		}
	}
}
