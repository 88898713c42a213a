package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/follow"
	"github.com/weir-run/weir/trajectory/tables"
)

// roundFlow returns what a round of a recording runs: the model with its tools, and where
// after the goodbye only what the customer said.
func (r *recording) roundFlow(last bool) weir.Definition {
	d := weir.Definition{
		Name:    r.id,
		Context: map[string]any{"model": "recorded/gpt-4o", "system": r.system},
		Inputs:  map[string]any{"message": map[string]any{"type": "text", "required": true}},
		Nodes:   map[string]weir.NodeSpec{},
	}
	if last && (r.unanswered() || strings.Contains(r.said[len(r.said)-1], goodbye)) {
		d.Nodes["said"] = weir.NodeSpec{Type: "manualInput", With: map[string]any{"text": "{{ run.inputs.message }}", "history": true}}
		return d
	}
	most := 30
	if last && r.cutOff() {
		most = r.lastSteps
	}
	d.Nodes["toolbox"] = weir.NodeSpec{Type: "tools"}
	d.Nodes["agent"] = weir.NodeSpec{
		Type: "llmRequest", With: map[string]any{"maxSteps": most, "atMax": "stop"},
		In: map[string]any{"message": "{{ run.inputs.message }}", "tools": "{{ toolbox.tools }}"},
	}
	return d
}

// airlineSession are a recording as those of a session whose trajectory is kept.
type airlineSession struct {
	*replayedTalk
	db      *sqlite.Store
	storage trajectory.Mirrored
	session string
}

func (k *airlineSession) open(t *testing.T, s weir.Store) *weir.Weir {
	t.Helper()
	w, err := weir.Open(weir.Options{
		Store: s, Tools: k.tools.tools(), Providers: map[string]weir.Provider{"recorded": k.model},
		Trajectories: &weir.TrajectoryOptions{Storage: k.storage},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// say has the customer say what comes in a round.
func (k *airlineSession) say(ctx context.Context, t *testing.T, w *weir.Weir, round int) *weir.Reply {
	t.Helper()
	f, err := w.Define(k.r.roundFlow(round == len(k.r.said)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Session(ctx, f, weir.SessionOptions{ID: k.session, User: "customer", New: k.session == ""})
	if err != nil {
		t.Fatal(err)
	}
	k.session = s.ID
	turn, err := s.Send(ctx, k.r.said[round-1], weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// replayAll has conversations side by side, round by round.
func replayAll(t *testing.T, all []*airlineSession) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	ws := make([]*weir.Weir, len(all))
	for i, k := range all {
		ws[i] = k.open(t, unclosedStore{k.db})
	}
	for round, going := 1, true; going; round++ {
		going = false
		turns := map[int]*weir.Reply{}
		for i, k := range all {
			if round <= len(k.r.said) {
				turns[i] = k.say(ctx, t, ws[i], round)
			}
		}
		for i, turn := range turns {
			going = true
			state, err := turn.Wait(ctx)
			if err != nil || state.Status != engine.Completed || state.Round != round {
				t.Fatalf("%s, round %d: %s %v %v", all[i].r.id, round, state.Status, state.Error, err)
			}
		}
	}
	for i, k := range all {
		k.check(t, ws[i])
		closeWeir(t, ws[i])
	}
}

// messages returns those of the session, the roles and texts of which are the recorded
// ones.
func (k *airlineSession) messages(t *testing.T, w *weir.Weir) []convo.Message {
	t.Helper()
	s, err := w.Session(t.Context(), nil, weir.SessionOptions{ID: k.session})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Messages(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var out []convo.Message
	for _, m := range list {
		out = append(out, m.Message)
	}
	if err := differ(out, k.r.messages); err != nil {
		t.Errorf("%s: %v", k.r.id, err)
	}
	return out
}

// messageCounts is what a trajectory has to hold, counted from the published JSON without
// any code of ours.
type messageCounts struct {
	queries, answers, calls, states int
	tools                           int // distinct names in each round
	unanswered                      int // rounds that end in no answer
	calling                         int // calls that such a round ends with
}

func count(t *testing.T, line []byte) (c messageCounts) {
	t.Helper()
	var raw struct{ Messages []map[string]any }
	if err := json.Unmarshal(line, &raw); err != nil {
		t.Fatal(err)
	}
	var tools map[any]bool
	newest := 0 // calls of the newest answer, where it made some
	for i, m := range raw.Messages {
		calls, _ := m["tool_calls"].([]any)
		switch {
		case m["role"] == "user":
			c.queries++
			tools, newest = map[any]bool{}, 0
		case m["role"] == "assistant" && len(calls) == 0:
			c.states++
			newest = -1
		case m["role"] == "assistant":
			c.answers++
			newest = len(calls)
		}
		for _, call := range calls {
			c.calls++
			tools[call.(map[string]any)["function"].(map[string]any)["name"]] = true
		}
		if i+1 == len(raw.Messages) || raw.Messages[i+1]["role"] == "user" {
			c.tools += len(tools)
			if newest >= 0 && m["role"] != "system" {
				c.unanswered++
				c.calling += max(1, newest)
			}
		}
	}
	return c
}

func (c messageCounts) check(t *testing.T, id string, g *trajectory.Graph) {
	t.Helper()
	types, relations, outcomes := map[trajectory.Type]int{}, map[trajectory.Relation]int{}, 0
	for _, n := range g.Nodes {
		if n.Attributes[trajectory.AttrKind] == follow.KindOutcome {
			outcomes++
			continue
		}
		types[n.Type]++
	}
	for _, e := range g.Edges {
		relations[e.Relationship]++
	}
	want := map[trajectory.Type]int{
		trajectory.Query: c.queries, trajectory.State: c.states, trajectory.Action: c.answers + c.calls, trajectory.Tool: c.tools,
	}
	for _, typ := range trajectory.Types() {
		if types[typ] != want[typ] {
			t.Errorf("%s: the graph has %d nodes of the type %s, the data %d", id, types[typ], typ, want[typ])
		}
	}
	if outcomes != c.unanswered {
		t.Errorf("%s: the graph has %d outcomes, the data %d rounds without an answer", id, outcomes, c.unanswered)
	}
	// Each answer of these conversations makes one call, so that each answer and each
	// conclusion follows from one node. A round is left by its tools and its end.
	edges := map[trajectory.Relation]int{
		trajectory.Triggers: c.answers, trajectory.HasConclusion: c.states + c.calling,
		trajectory.Generates: c.calls, trajectory.RefersTo: c.calls,
	}
	for relation, n := range relations {
		if n != edges[relation] && (relation != trajectory.ContinuesTo || n < c.queries-1) {
			t.Errorf("%s: the graph has %d edges %s, the data %d", id, n, relation, edges[relation])
		}
	}
}

// check holds the trajectory that was kept against the data, the journal and the
// session.
func (k *airlineSession) check(t *testing.T, w *weir.Weir) {
	t.Helper()
	if err := compareStored(t.Context(), w, k.storage, "customer", k.session); err != nil {
		t.Errorf("%s: %v", k.r.id, err)
		return
	}
	for name, s := range map[string]trajectory.Storage{"files": k.storage.First, "tables": k.storage.Second} {
		g, err := trajectory.LoadGraph(t.Context(), s, "customer", k.session, 0)
		if err != nil {
			t.Errorf("%s, from the %s: %v", k.r.id, name, err)
			continue
		}
		count(t, k.r.line).check(t, k.r.id, g)
		if err := checkEnds(g); err != nil {
			t.Errorf("%s, from the %s: %v", k.r.id, name, err)
		}
		if got, want := g.Replay(), k.messages(t, w); !reflect.DeepEqual(plainly(got), plainly(want)) {
			t.Errorf("%s, from the %s: %d messages are replayed, and the session's %d are others", k.r.id, name, len(got), len(want))
		}
	}
	k.checkReload(t)
}

// plainly are messages by what a graph keeps of them.
func plainly(list []convo.Message) []string {
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = fmt.Sprintf("%s %s %q %q %v %s %s %v", m.ID, m.Role, m.Text, m.Reasoning, m.Calls, m.Name, m.CallID, m.Failed)
	}
	return out
}

// checkReload has the rounds go from the files to other tables and from these to other
// files, which are the same, byte for byte.
func (k *airlineSession) checkReload(t *testing.T) {
	t.Helper()
	rows, again := tables.New(tables.NewMemory()), files.New(t.TempDir(), files.Options{NoSync: true})
	all := trajectory.SessionFilter("customer", k.session)
	for _, step := range []struct{ to, from trajectory.Storage }{{rows, k.storage.First}, {again, rows}} {
		if n, err := trajectory.CopyRounds(t.Context(), step.to, step.from, all); err != nil || n != len(k.r.said) {
			t.Errorf("%s: %d rounds were copied of %d, %v", k.r.id, n, len(k.r.said), err)
		}
	}
	keys, err := k.storage.List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		first := encodedRecord(t, k.storage.First, key)
		for _, other := range []trajectory.Storage{k.storage.Second, rows, again} {
			if !bytes.Equal(first, encodedRecord(t, other, key)) {
				t.Errorf("%s: %s is not the same in %T", k.r.id, key, other)
			}
		}
	}
}

// encodedRecord returns a stored round as its two files have it.
func encodedRecord(t *testing.T, s trajectory.Storage, k trajectory.Key) []byte {
	t.Helper()
	r, err := s.Load(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := r.NodeLink()
	if err != nil {
		t.Fatal(err)
	}
	meta, err := r.Meta()
	if err != nil {
		t.Fatal(err)
	}
	return append(graph, meta...)
}

// airlineSessions are recordings on one file of one store.
func airlineSessions(t *testing.T, every int) (all []*airlineSession) {
	t.Helper()
	dir := t.TempDir()
	db := openFile(t, filepath.Join(dir, "weir.db"))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	both := trajectory.Mirrored{First: files.New(filepath.Join(dir, "files"), files.Options{NoSync: true}), Second: tables.New(db.Trajectories())}
	for i, r := range airline(t) {
		if i%every == 0 {
			all = append(all, &airlineSession{replayedTalk: newReplayedTalk(t, r), db: db, storage: both})
		}
	}
	return all
}

func TestAirlineTrajectoriesMatchConversations(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 12
	}
	for some := range slices.Chunk(airlineSessions(t, every), 24) {
		replayAll(t, some)
	}
}

func TestTrajectoryContinuesInAnotherProcess(t *testing.T) {
	t.Parallel()
	every := 20
	if testing.Short() {
		every = 60
	}
	for _, k := range airlineSessions(t, every) {
		for round := range k.r.said {
			w := k.open(t, unclosedStore{k.db})
			if state, err := k.say(t.Context(), t, w, round+1).Wait(t.Context()); err != nil || state.Status != engine.Completed {
				t.Fatalf("%s, round %d: %s %v %v", k.r.id, round+1, state.Status, state.Error, err)
			}
			if round+1 == len(k.r.said) {
				k.check(t, w)
			}
			closeWeir(t, w)
		}
	}
}
