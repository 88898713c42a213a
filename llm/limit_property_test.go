package llm_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/llm"
)

// asking is one call of a random schedule; times in whole seconds, so that much
// happens at once.
type asking struct {
	run, model         string
	at, lasts, givesUp int // givesUp 0: never
	tokens, took       int
}

type pause struct {
	model    string
	at, span int
}

// made is what came of an asking.
type made struct {
	asking
	begin, end time.Duration // since the start
	err        error
}

func asks() *rapid.Generator[asking] {
	return rapid.Custom(func(t *rapid.T) asking {
		return asking{
			run:     rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "run"),
			model:   rapid.SampledFrom([]string{"m", "m-mini", "n", "o"}).Draw(t, "model"),
			at:      rapid.IntRange(0, 90).Draw(t, "at"),
			lasts:   rapid.IntRange(0, 70).Draw(t, "lasts"),
			givesUp: rapid.SampledFrom([]int{0, 0, 0, 1, 5, 60}).Draw(t, "gives up after"),
			tokens:  rapid.IntRange(0, 120).Draw(t, "tokens"),
			took:    rapid.IntRange(-1, 120).Draw(t, "took"),
		}
	})
}

func somePause() *rapid.Generator[pause] {
	return rapid.Custom(func(t *rapid.T) pause {
		return pause{
			rapid.SampledFrom([]string{"m", "m-mini", "o"}).Draw(t, "model"),
			rapid.IntRange(0, 100).Draw(t, "at"), rapid.IntRange(1, 50).Draw(t, "for"),
		}
	})
}

func bounds() *rapid.Generator[map[string]llm.Limit] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"p", "p/m", "p/n", "p/m-mini"}), rapid.Custom(func(t *rapid.T) llm.Limit {
		return llm.Limit{
			Requests:   rapid.SampledFrom([]int{0, 1, 3, 10}).Draw(t, "requests"),
			Tokens:     rapid.SampledFrom([]int{0, 50, 100, 300}).Draw(t, "tokens"),
			Concurrent: rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "concurrent"),
		}
	}), 0, 4)
}

// Whatever asks for what and gives up when: nothing is over a limit or within a
// pause, everything that does not give up is let through, and in the end
// nothing is held.
func TestLimitsHoldAndEveryCallCompletes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limits := bounds().Draw(rt, "limits")
		schedule := rapid.SliceOfN(asks(), 1, 40).Draw(rt, "schedule")
		pauses := rapid.SliceOfN(somePause(), 0, 3).Draw(rt, "pauses")
		var out []made
		idle := false
		synctest.Test(t, func(*testing.T) { out, idle = carryOut(limits, schedule, pauses) })
		if !idle {
			rt.Fatal("something is still held or waits")
		}
		for i, c := range out {
			if c.err != nil && c.givesUp == 0 {
				rt.Fatalf("%+v was never let through: %v", c.asking, c.err)
			}
			if c.err != nil {
				continue
			}
			if what := breaks(limits, out, i); what != "" {
				rt.Fatalf("%+v began at %v: %s", c.asking, c.begin, what)
			}
			if p, ok := awaitResult(limits, pauses, c); ok {
				rt.Fatalf("%+v began at %v, within the pause %+v", c.asking, c.begin, p)
			}
		}
	})
}

// breaks says which limit the call at place i broke when it began.
func breaks(limits map[string]llm.Limit, out []made, i int) string {
	for name, limit := range limits {
		if what := broken(name, limit, wrapText(limits, name, out), i); what != "" {
			return what
		}
	}
	return ""
}

// awaitResult finds a pause of the call's key in which it began.
func awaitResult(limits map[string]llm.Limit, pauses []pause, c made) (pause, bool) {
	for _, p := range pauses {
		from := time.Duration(p.at) * time.Second
		until := from + time.Duration(p.span)*time.Second
		if key(limits, p.model) == key(limits, c.model) && c.begin > from && c.begin < until {
			return p, true
		}
	}
	return pause{}, false
}

func carryOut(limits map[string]llm.Limit, schedule []asking, pauses []pause) ([]made, bool) {
	start := time.Now()
	l := llm.NewLimits(limits)
	out := make([]made, len(schedule))
	var wg sync.WaitGroup
	for _, p := range pauses {
		wg.Go(func() {
			pass(time.Duration(p.at) * time.Second)
			l.Pause("p", p.model, time.Duration(p.span)*time.Second)
		})
	}
	for i, a := range schedule {
		wg.Go(func() {
			pass(time.Duration(a.at) * time.Second)
			// A day is for ever: what is let through at all is within hours.
			patience := 24 * time.Hour
			if a.givesUp > 0 {
				patience = time.Duration(a.givesUp) * time.Second
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			m := made{asking: a}
			var release func(int)
			release, m.err = l.Acquire(ctx, llm.LimitRequest{Run: a.run, Provider: "p", Model: a.model, Tokens: a.tokens})
			if m.err == nil {
				m.begin = time.Since(start)
				pass(time.Duration(a.lasts) * time.Second)
				m.end = time.Since(start)
				release(a.took)
			}
			out[i] = m
		})
	}
	wg.Wait()
	return out, l.Idle()
}

// key returns the most special key that a model of the test counts under.
func key(limits map[string]llm.Limit, model string) string {
	if _, ok := limits["p/"+model]; !ok && model == "m-mini" {
		if _, ok := limits["p/m"]; ok {
			return "p/m"
		}
	}
	return "p/" + model
}

// counts reports whether calls of a model count under a key.
func counts(limits map[string]llm.Limit, name, model string) bool {
	return name == "p" || name == key(limits, model)
}

// wrapText leaves the calls that were made and count under a key; the others are
// in their places without a beginning.
func wrapText(limits map[string]llm.Limit, name string, out []made) []*made {
	calls := make([]*made, len(out))
	for i, o := range out {
		if o.err == nil && counts(limits, name, o.model) {
			calls[i] = &o
		}
	}
	return calls
}

// broken says how the call at place i broke a limit when it began. Of calls
// that began or ended at the same time it believes the best.
func broken(name string, limit llm.Limit, calls []*made, i int) string {
	c := calls[i]
	if c == nil {
		return ""
	}
	own := min(c.tokens, limitOr(limit.Tokens, c.tokens))
	requests, concurrent, tokens := 1, 1, own
	for j, o := range calls {
		if j == i || o == nil || o.begin > c.begin {
			continue
		}
		if o.end > c.begin && o.begin < c.begin {
			concurrent++
		}
		if o.begin > c.begin-time.Minute {
			requests++
			tokens += o.counted(c.begin, limit)
		}
	}
	switch {
	case limit.Requests > 0 && requests > limit.Requests:
		return fmt.Sprintf("%d requests in a minute under %s, the limit is %d", requests, name, limit.Requests)
	case limit.Concurrent > 0 && concurrent > limit.Concurrent:
		return fmt.Sprintf("%d at the same time under %s, the limit is %d", concurrent, name, limit.Concurrent)
	case limit.Tokens > 0 && tokens > limit.Tokens && tokens > own:
		return fmt.Sprintf("%d tokens in a minute under %s, the limit is %d", tokens, name, limit.Tokens)
	}
	return ""
}

// counted returns what a call that began before takes of the minute at least.
func (m *made) counted(at time.Duration, limit llm.Limit) int {
	switch {
	case m.begin == at, m.end == at:
		return 0
	case m.end < at && m.took >= 0:
		return m.took
	default:
		return min(m.tokens, limitOr(limit.Tokens, m.tokens))
	}
}

func limitOr(limit, otherwise int) int {
	if limit > 0 {
		return limit
	}
	return otherwise
}
