package trajectory_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory"
)

func say(t *testing.T, r *trajectory.Recorder, messages ...convo.Message) {
	t.Helper()
	if _, err := r.AddMessages(trajectory.MessageOptions{By: trajectory.Attribution{Run: "r1"}, At: now}, messages...); err != nil {
		t.Fatal(err)
	}
}

func user(text string) convo.Message { return convo.Message{Role: convo.User, Text: text} }

func said(text string, calls ...string) convo.Message {
	m := convo.Message{Role: convo.Assistant, Text: text}
	for _, c := range calls {
		id, name, _ := strings.Cut(c, " ")
		m.Calls = append(m.Calls, convo.Call{ID: id, Name: name, Arguments: "{}"})
	}
	return m
}

func result(id, name, text string) convo.Message {
	return convo.Message{Role: convo.Tool, CallID: id, Name: name, Text: text}
}

func TestMessagesBecomeNodes(t *testing.T) {
	t.Parallel()
	r := open(t)
	messages := []convo.Message{
		{Role: convo.System, Text: "Be brief."},
		user("Which is cheaper?"),
		said("I look at both.", "1 price", "2 price", "3 stock"),
		result("2", "price", "7"), result("1", "price", "8"),
		{Role: convo.Tool, CallID: "3", Name: "stock", Text: "down", Failed: true},
		said("", "1 price"), // the provider uses an id again
		result("1", "price", "9"),
		user("Hurry up."),
		said("The second."),
	}
	say(t, r, messages...)
	want := "qu0 triggers ac0, ac0 generates ac1, ac1 refers_to to0, ac0 generates ac2, ac2 refers_to to0, " +
		"ac0 generates ac3, ac3 refers_to to1, ac1 triggers ac4, ac2 triggers ac4, ac3 triggers ac4, " +
		"ac4 generates ac5, ac5 refers_to to0, ac5 triggers ac6, ac6 has_conclusion st0"
	if got := edges(r.Graph()); got != want {
		t.Errorf("the edges are\n%s, want\n%s", got, want)
	}
	if got := r.Record().Messages; !reflect.DeepEqual(got, messages) {
		t.Errorf("the messages are %+v", got)
	}
	if got := r.Graph().Replay(); !reflect.DeepEqual(got, messages[1:]) {
		t.Errorf("replayed are\n%+v, said was\n%+v", got, messages[1:])
	}
	call, err := r.Node("Action(action00003)")
	if err != nil || call.Attributes[trajectory.AttrFailed] != true || call.Attributes[trajectory.AttrResult] != "down" || call.Version != 2 {
		t.Errorf("the call that failed is %+v, %v", call, err)
	}
}

func TestResultWithoutCallIsRefused(t *testing.T) {
	t.Parallel()
	r := open(t)
	say(t, r, user("Go."), said("", "1 look"), result("1", "look", "x"))
	before := r.Record()
	for _, m := range []convo.Message{result("2", "look", "y"), result("1", "look", "again")} {
		if _, err := r.AddMessages(trajectory.MessageOptions{At: now}, m); !errors.Is(err, trajectory.ErrUnknownCall) {
			t.Errorf("call %s: got %v", m.CallID, err)
		}
	}
	if _, err := r.AddMessages(trajectory.MessageOptions{At: now}, convo.Message{Role: "robot"}); !errors.Is(err, convo.ErrUnknownRole) {
		t.Errorf("an unknown role: got %v", err)
	}
	if !reflect.DeepEqual(before, r.Record()) {
		t.Error("what was refused has changed the round")
	}
}

func TestMessageVersionsAreKeptAndShownOnce(t *testing.T) {
	t.Parallel()
	r := open(t)
	ask, answer := user("Ready?"), said("Yes.")
	call, ok := said("", "1 look"), result("1", "look", "x")
	ask.ID, answer.ID, call.ID, ok.ID = "m1", "m4", "m2", "m3"
	say(t, r, ask, call, ok, answer)
	before := r.Record()
	say(t, r, ask, call, ok, answer)
	if !reflect.DeepEqual(before, r.Record()) {
		t.Error("saying the same again has changed the round")
	}
	answer.Text, ok.Text = "No.", "y"
	say(t, r, ok, answer)
	state, err := r.Node("State(state00000)")
	if err != nil || state.Attributes[trajectory.AttrText] != "No." || state.History[1].Old[trajectory.AttrText] != "Yes." {
		t.Errorf("the conclusion is %+v, %v", state, err)
	}
	if got := r.Graph().Replay(); !reflect.DeepEqual(got, []convo.Message{ask, call, ok, answer}) {
		t.Errorf("replayed are %+v", got)
	}
	call.Calls = nil
	if _, err := r.AddMessages(trajectory.MessageOptions{At: now}, call); err == nil {
		t.Error("a new version without the calls was taken")
	}
}

func TestManuallyAddedToolGetsNoBackReference(t *testing.T) {
	t.Parallel()
	r := open(t)
	say(t, r, user("Go."))
	tool := add(t, r, trajectory.NewNode{Type: trajectory.Tool, Name: "look", Relation: trajectory.FindRelevantTool, Pointer: trajectory.PointerAdvance})
	say(t, r, said("", "1 look"), result("1", "look", "x"), said("Done."))
	if g := r.Graph(); !g.Acyclic() || connected(g) != 1 || !strings.Contains(edges(g), short(tool)+" triggers ac0") {
		t.Errorf("the edges are %s", edges(g))
	}
}

func TestAJournalTimeIsKept(t *testing.T) {
	t.Parallel()
	r := open(t)
	at := time.Date(2020, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 7200))
	if _, err := r.AddMessages(trajectory.MessageOptions{At: at}, user("Go.")); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Node("Query(query00000)"); err != nil || n.Created != at.UTC() {
		t.Errorf("it was made at %s, %v, want %s", n.Created, err, at.UTC())
	}
}
