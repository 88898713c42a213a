package convo_test

import (
	"strconv"
	"testing"

	"github.com/weir-run/weir/convo"
)

func contextOf(b *testing.B, n int) convo.Context {
	b.Helper()
	c, err := convo.Context{ID: "c"}.Apply(convo.Change{Append: numberedMessages(n)})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

var benchLengths = []int{10, 1_000, 100_000}

// BenchmarkFork forks a context.
func BenchmarkFork(b *testing.B) {
	for _, n := range benchLengths {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			c := contextOf(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if f := c.Fork("f"); f.At != n {
					b.Fatal("the fork is not whole")
				}
			}
		})
	}
}

// BenchmarkForkAndAppend forks a context and adds one message to the fork.
func BenchmarkForkAndAppend(b *testing.B) {
	for _, n := range benchLengths {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			c := contextOf(b, n)
			b.ReportAllocs()
			for b.Loop() {
				f := c.Fork("f")
				f.History = f.History.Append(convo.Message{ID: "own", Role: convo.User})
				if f.History.Len() != n+1 {
					b.Fatal("the fork did not grow")
				}
			}
		})
	}
}

// BenchmarkSnapshot takes a snapshot and begins a transaction on it.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range benchLengths {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			m := convo.NewManager(contextOf(b, n), true)
			b.ReportAllocs()
			for b.Loop() {
				if got := convo.NewManager(m.Get(), true).Get(); got.History.Len() != n {
					b.Fatal("the snapshot is not whole")
				}
			}
		})
	}
}

// BenchmarkAppend adds one message to a history of that length, again and
// again, as a conversation does.
func BenchmarkAppend(b *testing.B) {
	for _, n := range benchLengths {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			c := contextOf(b, n)
			b.ReportAllocs()
			h, i := c.History, 0
			for b.Loop() {
				if i++; i%1_000 == 0 {
					h = c.History
				}
				h = h.Append(convo.Message{ID: "x" + strconv.Itoa(i%1_000), Role: convo.User, Text: "hello"})
			}
		})
	}
}

// BenchmarkTurn is what a turn costs a context: a transaction that adds two
// messages, and the fold of its changes.
func BenchmarkTurn(b *testing.B) {
	for _, n := range benchLengths {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			first := contextOf(b, n)
			b.ReportAllocs()
			c, i := first, 0
			for b.Loop() {
				if i++; i%1_000 == 0 {
					c = first
				}
				c = appendTurn(b, c, "turn"+strconv.Itoa(i%1_000))
			}
		})
	}
}

func appendTurn(b *testing.B, c convo.Context, prefix string) convo.Context {
	b.Helper()
	m := convo.NewManager(c, true)
	m.SetIDPrefix(prefix)
	if _, err := m.AddAll([]convo.Message{{Role: convo.User, Text: "a"}, {Role: convo.Assistant, Text: "b"}}); err != nil {
		b.Fatal(err)
	}
	for _, ch := range m.Changes() {
		var err error
		if c, err = c.Apply(ch); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// BenchmarkMessages is the whole epoch as a list; it grows with the list.
func BenchmarkMessages(b *testing.B) {
	for _, n := range benchLengths {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			c := contextOf(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if ms, err := c.Messages(); err != nil || len(ms) != n {
					b.Fatal(len(ms), err)
				}
			}
		})
	}
}
