package bench

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/convo"
)

// BenchmarkContext measures taking a fork and a snapshot of short and long
// conversations: the time must not depend on the length.
func BenchmarkContext(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		c := conversation(b, n)
		b.Run(fmt.Sprintf("fork/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if f := c.Fork("lane"); f.History.Len() != n {
					b.Fatal(f.History.Len())
				}
			}
		})
		b.Run(fmt.Sprintf("snapshot/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if m := convo.NewManager(c, true); m.Get().History.Len() != n {
					b.Fatal("not a snapshot")
				}
			}
		})
	}
}

// conversation returns a context of n messages.
func conversation(b *testing.B, n int) convo.Context {
	b.Helper()
	c, err := convo.New("main", convo.Change{Create: true})
	for i := range n {
		if err == nil {
			c, err = c.Apply(convo.Change{Append: []convo.Message{{ID: fmt.Sprint("m", i), Role: convo.User, Text: "words"}}})
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	return c
}
