package storetest

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// findMany searches messages of a context with some thousands, of another one, and of a fork; every 100th has no id
// and every 700th has the id of a much earlier one.
func findMany(t *testing.T, s Store) {
	const count = 3000
	w := newWriter(t, s, "r")
	newest := map[string]int{}
	id := func(i int) string {
		switch {
		case i%100 == 0:
			return ""
		case i%700 == 1:
			return "again"
		}
		return fmt.Sprint("m", i)
	}
	for i := 0; i < count; {
		ch := &convo.Change{Create: i == 0}
		for range 1 + i%90 {
			if i < count {
				ch.Append = append(ch.Append, convo.Message{ID: id(i), Role: convo.User, Text: "said"})
				newest[id(i)] = i
				i++
			}
		}
		w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{
			{ID: "main", Create: ch.Create, Adds: len(ch.Append), Body: ch},
		}})
	}
	lane := &convo.Change{}
	for i := range 600 {
		lane.Append = append(lane.Append, convo.Message{ID: fmt.Sprint("l", i), Role: convo.User, Text: "said"})
	}
	w.append(t, &engine.NodeStarted{Path: "n", Forks: []engine.ContextChange{{ID: "lane", Create: true, Parent: "main", At: 1000}}})
	w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{{ID: "lane", Adds: 600, Body: lane}}})
	s = s.reopen(t)
	find := func(context, id string, n, want int) {
		t.Helper()
		got, err := s.FindMessage(t.Context(), "r", context, id, n)
		must(t, err)
		equal(t, fmt.Sprintf("position of %q in %s below %d", id, context, n), got, want)
	}
	for i := 1; i < count; i += 37 {
		if id(i) != "" {
			find("main", id(i), count, newest[id(i)])
			find("main", fmt.Sprint("none", i), count, -1)
		}
		if id(i) != "" && id(i) != "again" {
			find("main", id(i), i, -1)
			find("main", id(i), i+1, i)
		}
	}
	find("main", "again", 2102, 2101)
	find("main", "again", 2101, 1401)
	find("main", "again", 1, -1)
	for _, i := range []int{0, 23, 24, 599} {
		find("lane", fmt.Sprint("l", i), 1600, 1000+i)
		find("lane", fmt.Sprint("l", i), 1000+i, -1)
	}
	find("lane", "m5", 1600, -1)
}
