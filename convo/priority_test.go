package convo_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
)

// TestViewOmitsLowestPriorityFirst draws conversations of single messages with priorities and a room that they exceed:
// no omitted message has a higher priority than one that is shown, or is newer at the same priority.
func TestViewOmitsLowestPriorityFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []convo.Message
		n := rapid.IntRange(10, 60).Draw(t, "messages")
		for i := range n {
			list = append(list, convo.Message{
				ID: fmt.Sprint(i), Role: rapid.SampledFrom([]convo.Role{convo.User, convo.Assistant}).Draw(t, "role"), Text: strings.Repeat("word ", 20),
				Priority: rapid.SampledFrom([]int{0, 1, 49, 50, 51, 100}).Draw(t, "priority"), Pinned: rapid.IntRange(0, 9).Draw(t, "pin") == 0,
			})
		}
		list[0].Priority, list[1].Role, list[1].Priority, list[1].Pinned = 1, convo.Assistant, 90, false
		c := convo.Context{ID: "c"}
		c.History = c.History.Append(list...)
		v, err := c.View(convo.ViewSpec{Room: 29 * rapid.IntRange(n/2, n-1).Draw(t, "room"), Low: rapid.IntRange(50, 100).Draw(t, "low"), Count: wordCounter{}})
		if err != nil {
			t.Skip(err)
		}
		checkPriorities(t, list, v)
	})
}

// isShown reports whether a view has a message.
func isShown(v convo.View, m convo.Message) bool {
	return slices.ContainsFunc(v.Messages, func(o convo.Message) bool { return o.ID == m.ID })
}

// checkPriorities checks that a view of single messages omits those with the lowest priority,
// the oldest first, and neither pinned ones nor the newest of the user.
func checkPriorities(t *rapid.T, list []convo.Message, v convo.View) {
	rank := func(i int) int { return cmp.Or(list[i].Priority, convo.DefaultPriority)*1000 + i }
	newestUser, highest := -1, -1
	for i, m := range list {
		if m.Role == convo.User {
			newestUser = i
		}
		if !isShown(v, m) {
			highest = max(highest, rank(i))
		}
	}
	if highest < 0 || v.Manifest.Omitted == 0 {
		t.Fatalf("nothing was omitted: %+v", v.Manifest)
	}
	for i, m := range list[:len(list)-1] {
		must := m.Pinned || i == newestUser
		switch shown := isShown(v, m); {
		case shown && !must && rank(i) < highest:
			t.Fatalf("message %d has rank %d and is shown, one with rank %d is not", i, rank(i), highest)
		case !shown && must:
			t.Fatalf("message %d is not shown", i)
		}
	}
}

// TestSummaryCoversMessagesOmittedByPriority: each omitted message was part of exactly one request for a summary.
func TestSummaryCoversMessagesOmittedByPriority(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := convo.Context{ID: "c"}
		spec := convo.ViewSpec{Room: 900, Count: wordCounter{}, Strategy: convo.Summarise, Summary: 40}
		var all []convo.Message
		summarised := make(map[string]int)
		for i := range rapid.IntRange(30, 120).Draw(t, "messages") {
			m := convo.Message{
				ID: fmt.Sprint("m", i), Role: convo.Assistant, Text: strings.Repeat("word ", 20),
				Priority: rapid.SampledFrom([]int{20, 50, 80}).Draw(t, "priority"),
			}
			all = append(all, m)
			c.History = c.History.Append(m)
			v, err := c.View(spec)
			if err != nil {
				t.Fatal(err)
			}
			if v.Need != nil {
				v = summarise(t, &c, spec, v, summarised)
			}
			c.Marks = v.Marks
			for _, m := range all {
				shown := isShown(v, m)
				if want := map[bool]int{true: 0, false: 1}[shown]; summarised[m.ID] != want {
					t.Fatalf("message %s: shown %v, in %d summaries", m.ID, shown, summarised[m.ID])
				}
			}
		}
	})
}

// summarise gives a context the summary that a view needs, counts the messages that it
// covers, and returns the view with it.
func summarise(t *rapid.T, c *convo.Context, spec convo.ViewSpec, v convo.View, covered map[string]int) convo.View {
	for _, m := range v.Need.Messages {
		covered[m.ID]++
	}
	c.Marks = v.Marks
	c.Marks.Summary = &convo.Summary{From: v.Need.From, To: v.Need.To, Text: "so far"}
	v, err := c.View(spec)
	if err != nil || v.Need != nil {
		t.Fatal(err, v.Need)
	}
	return v
}

func TestPrependPutsMessagesBeforeAllOthers(t *testing.T) {
	say := func(id, text string) convo.Message { return convo.Message{ID: id, Role: convo.User, Text: text} }
	old := convo.Context{ID: "c"}
	old.History = old.History.Append(say("past", "an earlier epoch"))
	old, _ = old.Apply(convo.Change{Reset: true})
	old.History = old.History.Append(say("a", "1"), say("b", "2"))
	m := convo.NewManager(old, true)
	if _, err := m.Add(say("c", "3")); err != nil {
		t.Fatal(err)
	}
	out, err := m.Prepend(say("x", "first"), say("b", "2 again"), convo.Message{Role: convo.User, Text: "without id"}, say("past", "reused"))
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 4 || out[0].ID != "x" || out[1].Text != "2 again" || out[2].ID == "" || out[3].Text != "reused" {
		t.Errorf("returned %+v", out)
	}
	if _, err := m.Prepend(say("x", "first"), say("b", "2 again")); err != nil { // again: no change
		t.Fatal(err)
	}
	want := []string{"first", "without id", "reused", "1", "2 again", "3"}
	replayed := old
	for _, ch := range m.Changes() {
		if replayed, err = replayed.Apply(ch); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []convo.Context{m.Get(), replayed} {
		v, err := c.View(convo.ViewSpec{Room: 1000, Count: wordCounter{}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range v.Messages {
			got = append(got, m.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the view has %q, want %q", got, want)
		}
	}
	if _, err := m.Prepend(say("y", "good"), convo.Message{ID: "z", Role: "nobody"}); err == nil {
		t.Fatal("a message with an unknown role was accepted")
	}
	if ms, _ := m.Get().Messages(); len(ms) != len(want) {
		t.Errorf("a failed Prepend left %d messages, want %d", len(ms), len(want))
	}
}
