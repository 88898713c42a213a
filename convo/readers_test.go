package convo_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
)

// One writer makes views of a context while others read it as it was or as it
// is: no reader's view affects another's.
func TestConcurrentViewsAreIndependent(t *testing.T) {
	t.Parallel()
	views := convo.NewViews(0)
	spec := convo.ViewSpec{Room: 400, Count: wordCounter{}}
	c := convo.Context{ID: "c"}
	var all sync.WaitGroup
	for i := range 200 {
		id := fmt.Sprint("call", i)
		c.History = c.History.Append(
			convo.Message{Role: convo.User, Text: strings.Repeat("why ", i%7+1)},
			convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: id, Name: "look", Arguments: "{}"}}},
			convo.Message{Role: convo.Tool, CallID: id, Name: "look", Text: strings.Repeat("seen ", 30*(i%11))})
		now := c
		for range 2 {
			all.Go(func() { readView(t, views, now, spec) })
		}
		v, err := views.View("run", c, spec)
		if err != nil {
			t.Fatal(err)
		}
		c.Marks = v.Marks
	}
	all.Wait()
}

// readView makes a view and reads all of it.
func readView(t *testing.T, views *convo.Views, now convo.Context, spec convo.ViewSpec) {
	t.Helper()
	v, err := views.View("run", now, spec)
	anew, errRestored := now.View(spec)
	if (err == nil) != (errRestored == nil) || err == nil && !sameView(v, anew) {
		t.Errorf("kept: %v %+v; anew: %v %+v", err, v.Manifest, errRestored, anew.Manifest)
	}
	for back := range 6 {
		v.Since(now.History.Len() - back)
	}
}

func TestSinceCountsShownMessages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := convo.Context{ID: "c"}
		for i := range rapid.IntRange(1, 12).Draw(t, "turns") {
			m := convo.Message{Role: convo.Assistant, Text: "well"}
			for k := range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, convo.Call{ID: fmt.Sprint(i, ".", k), Name: "look"})
			}
			c.History = c.History.Append(convo.Message{Role: convo.User, Text: "go"}, m)
			for _, call := range m.Calls {
				c.History = c.History.Append(convo.Message{Role: convo.Tool, CallID: call.ID, Name: "look", Text: "seen"})
			}
		}
		v, err := c.View(convo.ViewSpec{Room: 1 << 20, Count: wordCounter{}})
		if err != nil {
			t.Fatal(err)
		}
		n := c.History.Len()
		pos := rapid.IntRange(0, n).Draw(t, "pos")
		if got := v.Since(pos); got != n-pos {
			t.Fatalf("%d of %d messages since %d", got, n, pos)
		}
	})
}
