package childrun_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner/childrun"
)

// event is an event of a Link, with the action and the state that must follow.
type event struct {
	name  string
	send  func(l *childrun.Link) any
	want  any
	state childrun.LinkState
}

func resume(o childrun.Origin, recorded bool, want childrun.Request, state childrun.LinkState) event {
	return event{"continue", func(l *childrun.Link) any {
		return l.Continue(o, recorded, func() *engine.ChildReported {
			return &engine.ChildReported{ID: "n:run#1", Run: "c", Status: engine.Running}
		})
	}, want, state}
}

func answer(a childrun.Answer, stopping bool, want childrun.Permission, state childrun.LinkState) event {
	return event{"answer", func(l *childrun.Link) any { return l.Answered(a, stopping) }, want, state}
}

func increased(want bool, state childrun.LinkState, list ...engine.Account) event {
	return event{"increased", func(l *childrun.Link) any { return l.Increased(list) }, want, state}
}

func news(s engine.Status, want bool, state childrun.LinkState, asked ...engine.Interrupt) event {
	return event{"asked", func(l *childrun.Link) any { return l.IsNews(s, asked) }, want, state}
}

func TestLinkReturnsTheActionOfEachEvent(t *testing.T) {
	const detached, attaching, attached = childrun.Detached, childrun.Attaching, childrun.Attached
	q := engine.Interrupt{ID: "q"}
	more := engine.Account{Path: "p|n", Max: engine.Usage{Calls: 3}}
	ask := resume(childrun.Node, false, childrun.AskParent, attaching)
	accepted := answer(childrun.Accepted, false, childrun.LaunchBelow, attached)
	orphan := answer(childrun.ParentEnded, false, childrun.Launch, attached)
	notified := event{"notified", func(l *childrun.Link) any {
		l.Notified(&engine.ChildReported{Interrupts: []engine.Interrupt{q}})
		return nil
	}, nil, attached}
	for name, events := range map[string][]event{
		"a root launches at once":                  {resume(childrun.Root, false, childrun.LaunchAtOnce, attached)},
		"a recorded program asks nobody":           {resume(childrun.Node, true, childrun.LaunchAtOnce, attached)},
		"a second event while asking asks nothing": {ask, resume(childrun.Node, false, childrun.NoRequest, attaching)},
		"an accepted child launches":               {ask, accepted},
		"a report first is no answer":              {ask, answer(childrun.ReportFirst, false, childrun.NoPermission, attaching), accepted},
		"a second answer does nothing":             {ask, accepted, answer(childrun.NotAwaited, false, childrun.NoPermission, attached)},
		"an answer without a request does nothing": {answer(childrun.Accepted, false, childrun.NoPermission, detached)},
		"nothing waits, so it cancels itself":      {ask, answer(childrun.NotAwaited, false, childrun.LaunchCancelled, attached)},
		"nothing waits and it is stopping already": {ask, answer(childrun.NotAwaited, true, childrun.Launch, attached)},
		"without a parent it aborts":               {ask, answer(childrun.Unavailable, false, childrun.Abort, attached)},
		"without a parent and stopping it ends":    {ask, answer(childrun.Unavailable, true, childrun.Launch, attached)},
		"an orphan has nobody to notify":           {ask, orphan, news(engine.Running, false, attached, q), increased(false, attached, more)},
		"the run of a tool call of an earlier version cancels itself": {
			resume(childrun.Tool, false, childrun.NobodyWaits, attaching), answer(childrun.NotAwaited, false, childrun.LaunchCancelled, attached),
			answer(childrun.NotAwaited, false, childrun.NoPermission, attached), increased(false, attached, more),
		},
		"an increased budget is reported before anything is launched": {
			ask, accepted, increased(false, attached), increased(true, detached, more), news(engine.Running, false, detached, q), ask,
		},
		"a question is news once, and the end reports the rest": {
			ask, accepted, news(engine.Running, false, attached), news(engine.Running, true, attached, q),
			news(engine.Paused, false, attached, q), news(engine.Failed, false, attached, q),
			notified, news(engine.Running, false, attached, q), news(engine.Running, true, attached),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l childrun.Link
			for i, e := range events {
				if got := e.send(&l); got != e.want || l.State() != e.state {
					t.Fatalf("event %d, %s: %v and %s; want %v and %s", i+1, e.name, got, l.State(), e.want, e.state)
				}
				may := l.State() == attached
				if l.MayLaunch(childrun.Node) != may || l.MayLaunch(childrun.Tool) != may || !l.MayLaunch(childrun.Root) {
					t.Fatalf("event %d, %s: who may launch is wrong in state %s", i+1, e.name, l.State())
				}
			}
		})
	}
}

func TestEndOfAnExecutionIsReportedToTheParentOnly(t *testing.T) {
	want := map[childrun.End]childrun.Handover{
		childrun.Rests: childrun.Report, childrun.Closing: childrun.NoHandover,
		childrun.Lost: childrun.Rejoin, childrun.Broken: childrun.AbortParent,
	}
	for end, action := range want {
		var l childrun.Link
		if got := l.Ended(childrun.Node, end); got != action {
			t.Errorf("a child's end %d: %v, want %v", end, got, action)
		}
		for _, o := range []childrun.Origin{childrun.Root, childrun.Tool} {
			if got := l.Ended(o, end); got != childrun.NoHandover {
				t.Errorf("origin %d, end %d: %v, want nothing", o, end, got)
			}
		}
	}
}

// open returns an open child by its id, with "!" where it is to be cancelled and "~" where it
// was reported paused.
func open(ids ...string) (out []engine.OpenChild) {
	for _, id := range ids {
		name := strings.TrimRight(id, "!~")
		c := engine.OpenChild{ID: name, Start: &engine.ChildStart{Run: "run-" + name}, ToCancel: strings.Contains(id, "!")}
		if strings.Contains(id, "~") {
			c.Report = &engine.ChildReported{Status: engine.Paused, Interrupts: []engine.Interrupt{{ID: "q"}}}
		}
		out = append(out, c)
	}
	return out
}

// due begins what is due and writes it down, as "join a, cancel b".
func due(cs *childrun.Children, unchanged bool, ids ...string) string {
	var out []string
	for _, t := range cs.Due(open(ids...), unchanged) {
		t.Begin()
		out = append(out, [...]string{"join ", "stop ", "cancel "}[t.Kind]+t.Open.ID)
	}
	return strings.Join(out, ", ")
}

func TestChildIsJoinedOnceAndCancelledAfterTheJoin(t *testing.T) {
	var cs childrun.Children
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Fatalf("%q is due, want %q", got, want)
		}
	}
	check(due(&cs, false, "a", "b!"), "join a, cancel b")
	check(due(&cs, false, "a", "b!"), "")
	if !cs.Joining() || cs.Cancelled() {
		t.Fatal("a is being joined, and neither cancellation is durable")
	}
	cs.Get("b").CancelDurable()
	check(due(&cs, false, "a!"), "stop a")
	check(due(&cs, false, "a!"), "")
	if !cs.Get("a").Joined() || cs.Joining() {
		t.Fatal("the join is complete and a cancellation is due")
	}
	check(due(&cs, false, "a!"), "cancel a")
	cs.Get("a").CancelRefused()
	check(due(&cs, false, "a!"), "cancel a")
	if cs.Get("a").Joined() || cs.Cancelled() {
		t.Fatal("a cancellation is under way")
	}
	cs.Get("a").CancelDurable()
	if !cs.Cancelled() {
		t.Fatal("all cancellations are durable")
	}
	check(due(&cs, false), "")
	if !cs.None() {
		t.Fatal("no child is open")
	}
}

func TestChildJoinedAgainAfterItIsForgotten(t *testing.T) {
	var cs childrun.Children
	due(&cs, false, "a")
	old := cs.Get("a")
	cs.Forget("a")
	if got := due(&cs, false, "a"); got != "join a" {
		t.Fatalf("%q is due after the child was forgotten", got)
	}
	old.Joined() // the first join ends late
	if !cs.Joining() {
		t.Fatal("the end of the first join is taken for that of the second")
	}
}

func TestPausedChildIsJoinedOnlyWhereSomethingMayHaveChanged(t *testing.T) {
	var cs childrun.Children
	if got := due(&cs, true, "a~", "b"); got != "join b" {
		t.Fatalf("%q is due of an unchanged run", got)
	}
	if got := due(&cs, false, "a~", "b"); got != "join a" {
		t.Fatalf("%q is due of a run that may have changed", got)
	}
}

func TestRestsAsReportedNeedsThePauseThatTheParentKnows(t *testing.T) {
	paused := func(ids ...string) childrun.Row {
		r := childrun.Row{Exists: true, Committed: true, Status: engine.Paused}
		for _, id := range ids {
			r.Waiting = append(r.Waiting, engine.Interrupt{ID: id})
		}
		return r
	}
	running := paused("q")
	running.Status = engine.Running
	empty := paused("q")
	empty.Committed = false
	below := open("a~")[0]
	below.Report.Interrupts[0].ID = "n>q"
	for name, c := range map[string]struct {
		child engine.OpenChild
		row   childrun.Row
		want  bool
	}{
		"as reported":       {open("a~")[0], paused("q"), true},
		"another question":  {open("a~")[0], paused("r"), false},
		"asked by its own":  {below, paused("n>q"), false},
		"reported running":  {open("a")[0], paused("q"), false},
		"running meanwhile": {open("a~")[0], running, false},
		"without a commit":  {open("a~")[0], empty, false},
	} {
		if got := childrun.RestsAsReported(&c.child, c.row); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestMeansToCancelFollowFromTheRow(t *testing.T) {
	for want, row := range map[childrun.CancelMeans]childrun.Row{
		childrun.ReportCancelled: {},
		childrun.CancelFirst:     {Exists: true},
		childrun.SendCancel:      {Exists: true, Committed: true, Status: engine.Running},
	} {
		if got := childrun.MeansToCancel(row); got != want {
			t.Errorf("%+v: %d, want %d", row, got, want)
		}
	}
}
