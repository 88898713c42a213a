package history_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/follow"
)

// surveyType returns a node type that records its work by hand, asks a person in the middle,
// and continues.
func surveyType(entered *int) weir.Type {
	return weir.Func("survey", func(ctx weir.Ctx, _ struct{}) (struct{ ID string }, error) {
		*entered++
		g := ctx.Trajectory()
		plan, err := g.Add(trajectory.NewNode{Type: trajectory.State, Name: "plan", Attributes: map[string]any{trajectory.AttrText: "Look at the dam."}})
		if err != nil {
			return struct{ ID string }{}, err
		}
		if _, err := g.Add(trajectory.NewNode{Type: trajectory.File, Name: "dam.txt", After: []trajectory.ID{plan}}); !errors.Is(err, trajectory.ErrNoRelation) {
			return struct{ ID string }{}, fmt.Errorf("an edge from a State to a File was made: %w", err)
		}
		file, err := g.Add(trajectory.NewNode{Type: trajectory.File, Name: "dam.txt", After: []trajectory.ID{plan}, Relation: trajectory.RefersTo})
		if err != nil {
			return struct{ ID string }{}, err
		}
		if _, given, err := ctx.Wait("ok", engine.Interrupt{Kind: engine.AwaitInput, Prompt: "Go on?"}); err != nil || !given {
			return struct{ ID string }{}, err
		}
		text := "The dam."
		if err := errors.Join(
			g.Edit(file, trajectory.Edit{Description: &text}),
			g.Point(plan),
			ctx.Declare(trajectory.Artifact{Type: trajectory.Knowledge, Name: "dams hold water"}),
		); err != nil {
			return struct{ ID string }{}, err
		}
		return struct{ ID string }{string(file)}, nil
	})
}

const surveyFlow = `
weir: 1
name: survey
context: {model: clerk/m}
inputs: {q: {type: text, required: true}}
nodes:
  go: {type: survey}
  say: {type: llmRequest, after: go, in: {message: "{{ run.inputs.q }}"}}
outputs: {id: "{{ go.iD }}"}
`

func TestManualTrajectoryNodesAreAddedOnce(t *testing.T) {
	for _, every := range []bool{true, false} {
		t.Run(fmt.Sprint(every), func(t *testing.T) { checkSurvey(t, every) })
	}
}

// checkSurvey runs a survey in two processes, one up to its question and one from there.
func checkSurvey(t *testing.T, every bool) {
	t.Helper()
	path, entered, s := filepath.Join(t.TempDir(), "weir.db"), 0, memoryTables()
	open := func() *weir.Weir {
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := weir.Options{Store: db, Types: []weir.Type{surveyType(&entered)}, Providers: map[string]weir.Provider{"clerk": lookingUpModel{}}}
		if every {
			o.Trajectories = &weir.TrajectoryOptions{Storage: s}
		}
		w, err := weir.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := open()
	res := runOf(t, w, surveyFlow, weir.Start{ID: "r1", Inputs: map[string]any{"q": "why?"}})
	if res.Status != engine.Paused {
		t.Fatal(res.Status, res.Error)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w = open()
	defer w.Close(t.Context()) //nolint:errcheck // the test is over
	answerSurvey(t, w, res.Interrupts[0].ID)
	if entered != 2 {
		t.Errorf("the node was entered %d times", entered)
	}
	g, err := w.Trajectory(t.Context(), "r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimLeft(`
query00000 survey why?
state00000 plan Look at the dam. <-has_conclusion- query00000
file00000 dam.txt <-refers_to- state00000
knowledge00000 dams hold water <-produces- state00000
state00001 WHY? <-has_conclusion- state00000
`, "\n")
	if got := graphText(g); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if every {
		checkStored(t, w, s, "", "r1")
	}
}

func answerSurvey(t *testing.T, w *weir.Weir, question string) {
	t.Helper()
	r, err := w.Resume(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Answer(t.Context(), question, "yes"); err != nil {
		t.Fatal(err)
	}
	res, err := r.Wait(t.Context())
	if err != nil || res.Status != engine.Completed {
		t.Fatal(res.Status, res.Error, err)
	}
	if id, _ := res.Outputs.Get("id"); id != "File(file00000)" {
		t.Errorf("the file is %v", id)
	}
}

// describingModel answers as clerk does, and describes data when it is let.
type describingModel struct {
	lookingUpModel
	let  chan struct{}
	fail bool
	seen chan string
}

func (p describingModel) Generate(ctx context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if !strings.Contains(r.System, "piece of data") {
		return p.lookingUpModel.Generate(ctx, r, emit)
	}
	select {
	case <-p.let:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.seen != nil {
		p.seen <- r.Messages[0].Text
	}
	if p.fail {
		return nil, &llm.Error{Code: "model_filtered", Message: "I do not paint."}
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "A table of orders."}, Usage: llm.Usage{Input: 100, Output: 5}}, nil
}

const describingFlow = `
weir: 1
name: paint
context: {model: clerk/m}
%s
inputs: {q: {type: text, required: true}}
nodes:
  a: {type: llmRequest, in: {message: "{{ run.inputs.q }}", tools: [look]}}
outputs: {x: "{{ a.text }}"}
`

func startDescribing(t *testing.T, p describingModel, budget string, timeout time.Duration) (*weir.Weir, *weir.Run, trajectory.Storage) {
	t.Helper()
	return startDescribingBy(t, p, budget, &runner.DescriptionOptions{Model: "clerk/m", Timeout: timeout})
}

func startDescribingBy(t *testing.T, p describingModel, budget string, by *runner.DescriptionOptions) (*weir.Weir, *weir.Run, trajectory.Storage) {
	t.Helper()
	s := memoryTables()
	w, err := weir.Open(weir.Options{
		Providers: map[string]weir.Provider{"clerk": p}, Tools: []*weir.Tool{lookTool()},
		Trajectories: &weir.TrajectoryOptions{Storage: s, Describer: by},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	f, err := w.Parse("flow.yaml", []byte(fmt.Sprintf(describingFlow, budget)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Start(t.Context(), f, weir.Start{ID: "r1", Inputs: map[string]any{"q": "look"}})
	if err != nil {
		t.Fatal(err)
	}
	return w, r, s
}

func table(t *testing.T, w *weir.Weir) trajectory.Node {
	t.Helper()
	g, err := w.Trajectory(t.Context(), "r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes {
		if n.Name == "orders" {
			return n
		}
	}
	t.Fatal("there is no table")
	return trajectory.Node{}
}

func TestDescriptionDelaysStreamButNotRun(t *testing.T) {
	let, seen := make(chan struct{}), make(chan string, 8)
	w, r, s := startDescribing(t, describingModel{let: let, seen: seen}, "", 0)
	ended := false
	for it, err := range r.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := it.Event.(type) {
		case *engine.RunCompleted:
			ended = true
			close(let)
		case *engine.NoteRecorded:
			if !ended {
				t.Error("a portrait was made before it was let")
			}
			if e.Usage == nil || e.Usage.Input != 100 {
				t.Errorf("the portrait took %+v", e.Usage)
			}
		}
	}
	res, err := r.Wait(t.Context())
	if err != nil || res.Status != engine.Completed || res.Usage.Calls != 8 || res.Usage.Input != 620 {
		t.Errorf("%v %v: used %+v, with two answers and the descriptions of two tables and four columns", res.Status, err, res.Usage)
	}
	if n := table(t, w); n.Description != "A table of orders." || n.Version != 2 || n.History[1].By.Agent != follow.NoteDescription {
		t.Errorf("the table is %+v", n)
	}
	close(seen)
	checkSubjects(t, seen)
	checkColumnsAreDescribed(t, w)
	checkStored(t, w, s, "", "r1")
}

// checkSubjects wants two tables and four columns, each with what led to it.
func checkSubjects(t *testing.T, seen <-chan string) {
	t.Helper()
	var subjects []string
	for s := range seen {
		subjects = append(subjects, s)
	}
	slices.Sort(subjects)
	if len(subjects) != 6 {
		t.Fatalf("%d descriptions were made", len(subjects))
	}
	for _, subject := range []string{subjects[2], subjects[5]} { // a column and a table
		for _, part := range []string{"Table", "orders", "tool: look", "text: look"} {
			if !strings.Contains(subject, part) {
				t.Errorf("the model did not receive %q but\n%s", part, subject)
			}
		}
	}
}

// checkColumnsAreDescribed wants a description of each column that was declared with a table.
func checkColumnsAreDescribed(t *testing.T, w *weir.Weir) {
	t.Helper()
	g, err := w.Trajectory(t.Context(), "r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	columns := 0
	for _, n := range g.Nodes {
		if n.Type != trajectory.Column {
			continue
		}
		columns++
		if n.Description != "A table of orders." || n.Version != 2 {
			t.Errorf("the column is %+v", n)
		}
	}
	if columns != 4 {
		t.Errorf("there are %d columns", columns)
	}
}

func TestOnlySomeColumnsOfAWideTableAreDescribed(t *testing.T) {
	var calls atomic.Int64
	wide := &weir.Tool{
		Name: "look", Description: "Looks at a table.", Parameters: map[string]any{"type": "object"},
		Call: func(_ context.Context, c tool.Call) (string, error) {
			a := trajectory.Artifact{Type: trajectory.Table, Name: "wide", Description: "It is wide."}
			for i := range 100 {
				a.Columns = append(a.Columns, fmt.Sprint("c", i))
			}
			return "12 rows", c.Declare(a)
		},
	}
	w := weirkit.Open(t, weir.Options{
		Providers: map[string]weir.Provider{"clerk": lookingUpModel{}}, Tools: []*weir.Tool{wide},
		Trajectories: &weir.TrajectoryOptions{Storage: memoryTables(), Describer: &runner.DescriptionOptions{
			Describe: func(context.Context, string, string) (string, error) { calls.Add(1); return "a column", nil },
		}},
	})
	run := weirkit.StartText(t, w, strings.ReplaceAll(fmt.Sprintf(describingFlow, ""), "{type: text, required: true}", "{type: text, default: look}"))
	if r := weirkit.Wait(t, run); r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error)
	}
	if n := calls.Load(); n != 32 { // none for the table, which has a description
		t.Errorf("%d descriptions were made", n)
	}
}

func TestFailedDescriptionIsReported(t *testing.T) {
	let := make(chan struct{})
	close(let)
	cases := map[string]struct {
		p       describingModel
		budget  string
		timeout time.Duration
		want    string
	}{
		"refused": {describingModel{let: let, fail: true}, "", 0, "I do not paint."},
		"late":    {describingModel{let: make(chan struct{})}, "", time.Millisecond, "did not answer within 1ms"},
		"budget":  {describingModel{let: let}, "budget: {maxCalls: 2}", 0, "budget"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, r, _ := startDescribing(t, c.p, c.budget, c.timeout)
			res, err := r.Wait(t.Context())
			if err != nil || res.Status != engine.Completed {
				t.Fatal(res.Status, res.Error, err)
			}
			n := table(t, w)
			why, _ := n.Attributes[follow.AttrDescriptionError].(string)
			if n.Description != "" || !strings.Contains(why, c.want) {
				t.Errorf("description %q, error %q", n.Description, why)
			}
		})
	}
}

// A function of the program describes data in place of a model: its calls cost nothing, and one
// that fails, panics, says nothing or does not return leaves the data without description.
func TestAFunctionOfTheProgramDescribesData(t *testing.T) {
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	for name, c := range map[string]struct {
		describe  func(context.Context, string, string) (string, error)
		timeout   time.Duration
		text, why string
	}{
		"it answers": {describe: func(_ context.Context, run, subject string) (string, error) {
			return fmt.Sprintf(" %s has %v. ", run, strings.Contains(subject, "Table \"") && strings.Contains(subject, "tool: look")), nil
		}, text: "r1 has true."},
		"it fails":    {describe: func(context.Context, string, string) (string, error) { return "", errors.New("no paint") }, why: "no paint"},
		"it panics":   {describe: func(context.Context, string, string) (string, error) { panic("spilled") }, why: "spilled"},
		"it is empty": {describe: func(context.Context, string, string) (string, error) { return " \n", nil }, why: "the answer of the program's describer is empty"},
		"it ignores its context": {
			describe: func(context.Context, string, string) (string, error) { <-forever; return "late", nil },
			timeout:  time.Millisecond, why: "the program's describer did not answer within 1ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, r, _ := startDescribingBy(t, describingModel{}, "", &runner.DescriptionOptions{Describe: c.describe, Timeout: c.timeout})
			res, err := r.Wait(t.Context())
			if err != nil || res.Status != engine.Completed || res.Usage.Calls != 2 {
				t.Fatal(res.Status, res.Error, res.Usage, err)
			}
			n := table(t, w)
			why, _ := n.Attributes[follow.AttrDescriptionError].(string)
			if n.Description != c.text || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("description %q, error %q", n.Description, why)
			}
		})
	}
}

func TestADescriberIsEitherAModelOrAFunction(t *testing.T) {
	describe := func(context.Context, string, string) (string, error) { return "", nil }
	for _, by := range []*runner.DescriptionOptions{{}, {Model: "a/b", Describe: describe}} {
		if w, err := weir.Open(weir.Options{Trajectories: &weir.TrajectoryOptions{Describer: by}}); err == nil {
			t.Error("it is accepted")
			_ = w.Close(context.Background())
		}
	}
}

func TestCancelStopsDescriptions(t *testing.T) {
	w, r, _ := startDescribing(t, describingModel{let: make(chan struct{})}, "", 0)
	for it, err := range r.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, over := it.Event.(*engine.RunCompleted); over {
			break
		}
	}
	if err := w.Close(t.Context()); err != nil { // does not wait for the model
		t.Fatal(err)
	}
	if res, err := r.Wait(t.Context()); err != nil || res.Status != engine.Completed {
		t.Error(res.Status, err)
	}
}

func TestDescriptionIsChargedToSessionAndVerified(t *testing.T) {
	let := make(chan struct{})
	close(let)
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := memoryTables()
	w := openLookingUp(t, weir.Options{
		Store: db, Trajectories: &weir.TrajectoryOptions{Storage: s, Describer: &runner.DescriptionOptions{Model: "paint/m"}},
	}, describingModel{let: let})
	f, err := w.Parse("flow.yaml", []byte(fmt.Sprintf(strings.ReplaceAll(strings.Replace(describingFlow, "q: {", "message: {", 1), "run.inputs.q", "run.inputs.message"), "")))
	if err != nil {
		t.Fatal(err)
	}
	talk, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if st := weirkit.SendAndWait(t, talk, "look", weir.SendOptions{}); st.Status != engine.Completed || st.Usage.Calls != 8 {
			t.Errorf("%v: used %+v, with two answers and six descriptions", st.Status, st.Usage)
		}
	}
	row, err := w.Sessions(t.Context(), store.SessionFilter{})
	if err != nil || len(row) != 1 || row[0].Usage.Calls != 16 {
		t.Errorf("the session has used %+v, %v", row, err)
	}
	checkStored(t, w, s, "ann", talk.ID)
	if v, err := audit.Verify(t.Context(), db, audit.Options{}); err != nil || len(v.Findings) > 0 {
		t.Error(v, err)
	}
}
