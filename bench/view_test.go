package bench

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/token"
)

// airlineMessages returns the messages of the real conversations one after another,
// again and again, n in all.
func airlineMessages(tb testing.TB, n int) []convo.Message {
	tb.Helper()
	p, err := recorded.FromConversations(shareddata.Open(tb, shareddata.Airline))
	if err != nil {
		tb.Fatal(err)
	}
	out := make([]convo.Message, 0, n)
	for {
		for _, c := range p.Conversations() {
			for _, m := range c.Messages[1:] {
				m.ID = fmt.Sprint("m", len(out))
				if out = append(out, m); len(out) == n {
					return out
				}
			}
		}
	}
}

// counted counts the messages that are counted.
type counted struct {
	token.Counter
	n *int
}

// Message counts one.
func (c counted) Message(m convo.Message) int {
	*c.n++
	return c.Counter.Message(m)
}

// measureContext returns a context of 10,000 messages with the spec of its views.
func measureContext(tb testing.TB, window int) (convo.Context, convo.ViewSpec, *int) {
	tb.Helper()
	c := convo.Context{ID: "main"}
	c.History = c.History.Append(airlineMessages(tb, 10_000)...)
	counter, err := token.NewCounter(token.O200k, "openai")
	if err != nil {
		tb.Fatal(err)
	}
	n := new(int)
	return c, convo.ViewSpec{Room: window, Count: counted{counter, n}, Reader: "weir_result"}, n
}

// oneTurn returns what one turn adds: a question and an answer, as they were recorded.
func oneTurn(ms []convo.Message, i int) []convo.Message {
	said := map[convo.Role]convo.Message{}
	for ; len(said) < 2; i++ {
		if m := ms[i%len(ms)]; m.Role == convo.User || m.Role == convo.Assistant && len(m.Calls) == 0 {
			m.ID = ""
			said[m.Role] = m
		}
	}
	return []convo.Message{said[convo.User], said[convo.Assistant]}
}

// BenchmarkView measures the view of a context of 10,000 messages after one
// more turn, with what a move of the cut now and then takes. Counted/op is how
// many messages are counted for it.
func BenchmarkView(b *testing.B) {
	for _, window := range []int{16_000, 128_000} {
		for _, how := range []string{"kept", "anew"} {
			b.Run(fmt.Sprintf("%s/%d", how, window), func(b *testing.B) {
				measureView(b, how, window)
			})
		}
	}
}

func measureView(b *testing.B, how string, window int) {
	b.Helper()
	c, spec, n := measureContext(b, window)
	turns := airlineMessages(b, 10_000)
	views := convo.NewViews(1)
	v, err := views.View("run", c, spec)
	if err != nil {
		b.Fatal(err)
	}
	c.Marks = v.Marks
	i, shown, used := 0, 0, cpuTime()
	*n = 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		c.History = c.History.Append(oneTurn(turns, 7*i)...)
		if how == "kept" {
			v, err = views.View("run", c, spec)
		} else {
			v, err = c.View(spec)
		}
		if err != nil {
			b.Fatal(err)
		}
		c.Marks = v.Marks
		shown += len(v.Messages)
	}
	b.ReportMetric(float64((cpuTime()-used).Nanoseconds())/float64(i), "cpu-ns/op")
	b.ReportMetric(float64(*n)/float64(i), "counted/op")
	b.ReportMetric(float64(shown)/float64(i), "shown/op")
}

// TestViewCountsOnlyNewMessages: after a turn its messages are counted, and
// nothing else where the cut does not move.
func TestViewCountsOnlyNewMessages(t *testing.T) {
	c, spec, n := measureContext(t, 128_000)
	views := convo.NewViews(1)
	v, err := views.View("run", c, spec)
	if err != nil {
		t.Fatal(err)
	}
	turns, still := airlineMessages(t, 10_000), 0
	for i := range 300 {
		c.Marks = v.Marks
		c.History = c.History.Append(oneTurn(turns, 7*i)...)
		*n = 0
		if v, err = views.View("run", c, spec); err != nil {
			t.Fatal(err)
		}
		if v.Manifest.Reason != "" {
			continue
		}
		still++
		if *n > 4 { // two that are new, and the last group, which may continue
			t.Fatalf("turn %d: %d messages were counted for two new ones", i, *n)
		}
	}
	if still < 250 {
		t.Errorf("the cut moved in %d of 300 turns", 300-still)
	}
}
