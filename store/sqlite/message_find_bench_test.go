package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// BenchmarkFindMessage looks for an id that a context does not have, which is
// what happens each time a message is added to a context that was restored.
func BenchmarkFindMessage(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := openAt(b, filepath.Join(b.TempDir(), "weir.db"), Options{})
			c := newChain(b, s, "r")
			a := c.next()
			ch := &convo.Change{Create: true}
			for i := range n {
				ch.Append = append(ch.Append, convo.Message{
					ID: fmt.Sprintf("chat#%d/reply.1", i), Role: convo.User,
					Text: fmt.Sprintf("Message %d, which is about as long as what people say to each other when they have time.", i),
				})
			}
			a.Commit.Events[0] = &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{
				{ID: "long", Create: true, Adds: n, Body: ch},
			}}
			if err := s.Append(b.Context(), []store.Append{a})[0]; err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if at, err := s.FindMessage(b.Context(), "r", "long", "chat#none/ask.1", n); err != nil || at != -1 {
					b.Fatal(at, err)
				}
			}
		})
	}
}
