package history_test

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

// flowVersions returns what a flow is, round by round: agents and flows come and go.
func flowVersions() []string {
	head := "weir: 1\nname: edited\ncontext: {model: puppet/m}\ninputs: {message: {type: text, required: true}}\nnodes:\n"
	return []string{
		head + "  a: {type: agent, in: {message: \"{{ run.inputs.message }}\"}}\n  b: {type: agent, after: a, in: {message: b}}\n",
		head + "  x: {type: llmRequest, in: {message: \"{{ run.inputs.message }}\"}}\n",
		head + "  new: {type: agent, in: {message: \"{{ run.inputs.message }}\"}}\n  b: {type: agent, after: new, in: {message: b}}\n",
		head + "  c: {type: flow, with: {flow: inner}}\n  b: {type: agent, after: c, in: {message: b}}\n  a: {type: agent, after: b, in: {message: a}}\n",
		head + "  b: {type: agent, in: {message: \"{{ run.inputs.message }}\"}}\n  c: {type: flow, after: b, with: {flow: inner}}\n",
	}
}

const editedInner = `
weir: 1
name: inner
context: {model: puppet/m}
nodes:
  ask: {type: agent, in: {message: "inner !look", tools: [look]}}
outputs: {text: "{{ ask.text }}"}
`

// edit has a round of each edition of a flow, and returns the session.
func (s *trajectoryHarness) edit(t *testing.T, reopen bool) (id string) {
	t.Helper()
	for i, text := range flowVersions() {
		inner, err := s.w.Parse("inner.yaml", []byte(editedInner))
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.w.Parse("edited.yaml", []byte(text), inner)
		if err != nil {
			t.Fatal(err)
		}
		session, err := s.w.Session(t.Context(), f, weir.SessionOptions{User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if state := weirkit.SendAndWait(t, session, fmt.Sprint("message ", i), weir.SendOptions{}); state.Status != engine.Completed {
			t.Fatalf("%s %v", state.Status, state.Error)
		}
		if id = session.ID; !reopen {
			continue
		}
		if err := s.open(); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

func TestSubAgentKeepsItsNumber(t *testing.T) {
	for _, reopen := range []bool{false, true} {
		t.Run(fmt.Sprint(reopen), func(t *testing.T) {
			s := newTrajectoryHarness(t, filepath.Join(t.TempDir(), "weir.db"))
			if err := s.open(); err != nil {
				t.Fatal(err)
			}
			id := s.edit(t, reopen)
			if err := s.open(); err != nil {
				t.Fatal(err)
			}
			checkStored(t, s.w, s.kept, "ann", id)
			agents, err := s.w.Agents(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			want := []trajectory.Agent{
				{Sub: 0, Rounds: []int{1, 2, 3, 4, 5}},
				{Sub: 1, Name: "a", Rounds: []int{1, 4}},
				{Sub: 2, Name: "b", Rounds: []int{1, 3, 4, 5}},
				{Sub: 3, Name: "new", Rounds: []int{3}},
				{Sub: 4, Name: "c", Rounds: []int{4, 5}},
				{Sub: 5, Name: "c>ask", Rounds: []int{4, 5}},
			}
			if !reflect.DeepEqual(agents, want) {
				t.Errorf("the agents are %v\nwant %v", agents, want)
			}
		})
	}
}

func TestCancelledAgentKeepsPartialTrajectory(t *testing.T) {
	s := newTrajectoryHarness(t, filepath.Join(t.TempDir(), "weir.db"))
	in := make(chan struct{}, 2)
	s.tools = []*weir.Tool{{Name: "hang", Parameters: map[string]any{"type": "object"}, Call: func(ctx context.Context, _ tool.Call) (string, error) {
		in <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}}}
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	f, err := s.w.Parse("flow.yaml", []byte(`
weir: 1
name: one
context: {model: puppet/m}
nodes:
  a: {type: agent, in: {message: "x !look !look+hang+hang", tools: [look, hang]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	run, err := s.w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	<-in
	<-in
	if err := run.Cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	if r := weirkit.Wait(t, run); r.Status != engine.Cancelled {
		t.Fatal(r.Status)
	}
	checkStored(t, s.w, s.kept, "", "run")
	g, err := s.w.Trajectory(t.Context(), "run", 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := graphText(g); !strings.Contains(got, "action00005 call hang <-generates- action00002") || !strings.Contains(got, "table00000 table00") {
		t.Errorf("the agent's is\n%s", got)
	}
}

func TestProcessesShareTrajectoryNumbering(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	s := newTrajectoryHarness(t, path)
	kept := &failingStorage{Storage: s.kept}
	s.kept = kept
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	other := newTrajectoryHarness(t, path)
	other.kept, other.puppet = kept, s.puppet
	if err := other.open(); err != nil {
		t.Fatal(err)
	}
	id := ""
	// Each two are a round; the process that ends the third stores nothing of it.
	for i, w := range []*weir.Weir{s.w, other.w, other.w, s.w, s.w, other.w, s.w, s.w} {
		f, err := w.Parse("asking.yaml", []byte(waitingRound))
		if err != nil {
			t.Fatal(err)
		}
		kept.dying = i == 5
		session, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		id = session.ID
		if state := weirkit.SendAndWait(t, session, fmt.Sprint("message ", i), weir.SendOptions{}); state.Round != i/2+1 {
			t.Fatalf("%+v", state)
		}
	}
	checkStored(t, s.w, s.kept, "ann", id)
}

// earlyLeaseStore takes leases an hour before they end.
type earlyLeaseStore struct{ *sqlite.Store }

func (g earlyLeaseStore) Acquire(ctx context.Context, run, owner string, ttl time.Duration) (store.Lease, error) {
	r, err := g.Run(ctx, run)
	if err != nil {
		return store.Lease{}, err
	}
	return g.Seize(ctx, run, r.Owner, owner, ttl)
}

func TestFencedProcessDoesNotOverwriteTrajectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	s := newTrajectoryHarness(t, path)
	in, out := make(chan struct{}, 1), make(chan struct{})
	var once sync.Once
	s.tools = []*weir.Tool{{Name: "hang", Parameters: map[string]any{"type": "object"}, Call: func(context.Context, tool.Call) (string, error) {
		first := false
		once.Do(func() { first = true })
		if first {
			in <- struct{}{}
			<-out
		}
		return "done", nil
	}}}
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	f, err := s.w.Parse("flow.yaml", []byte(`
weir: 1
name: one
context: {model: puppet/m}
nodes:
  a: {type: llmRequest, in: {message: "x !look"}}
  b: {type: llmRequest, after: a, in: {message: "y !hang", tools: [hang]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	slow, err := s.w.Start(t.Context(), f, weir.Start{ID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	<-in
	db := openFile(t, path)
	other := &trajectoryHarness{store: earlyLeaseStore{db}, kept: s.kept, puppet: s.puppet, tools: s.tools}
	if err := other.open(); err != nil {
		t.Fatal(err)
	}
	run, err := other.w.Resume(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	r, err := other.runThrough(t.Context(), run, nil)
	if err != nil || r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error, err)
	}
	if err := other.close(); err != nil {
		t.Fatal(err)
	}
	close(out)
	if _, err := slow.Wait(t.Context()); err == nil {
		t.Error("it has not lost the run")
	}
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	checkStored(t, s.w, s.kept, "", "run")
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func TestRepeatedDataIsDescribedOnce(t *testing.T) {
	let, seen := make(chan struct{}), make(chan string, 8)
	kept := memoryTables()
	w := weirkit.Open(t, weir.Options{
		Providers: map[string]weir.Provider{"clerk": describingModel{let: let, seen: seen}}, Tools: []*weir.Tool{lookTool()},
		Trajectories: &weir.TrajectoryOptions{Storage: kept, Describer: &runner.DescriptionOptions{Model: "clerk/m"}},
	})
	run := weirkit.StartText(t, w, `
weir: 1
name: paint
context: {model: clerk/m}
nodes:
  a: {type: llmRequest, in: {message: look, tools: [look]}}
  b: {type: llmRequest, after: a, in: {message: look again, tools: [look]}}
  c: {type: llmRequest, after: b, in: {message: look once more, tools: [look]}}
`)
	for it, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, over := it.Event.(*engine.RunCompleted); over { // nothing was described until now
			close(let)
		}
	}
	r := weirkit.Wait(t, run)
	if r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error)
	}
	close(seen)
	var subjects []string
	for s := range seen {
		subjects = append(subjects, s[:strings.IndexByte(s, '\n')])
	}
	slices.Sort(subjects)
	want := []string{
		`The data: Column "notes.id".`, `The data: Column "notes.price".`, `The data: Column "orders.id".`, `The data: Column "orders.price".`,
		`The data: Table "notes".`, `The data: Table "orders".`,
	}
	if !slices.Equal(subjects, want) {
		t.Errorf("asked was %q", subjects)
	}
}
