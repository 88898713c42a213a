package convo_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
)

// viewBothWays makes a view again and with the views that are kept, which must be the
// same or fail the same, and returns the marks for the next view.
func viewBothWays(t *rapid.T, views *convo.Views, c convo.Context, spec convo.ViewSpec) convo.Marks {
	t.Helper()
	v, err := c.View(spec)
	again, errAgain := views.View("run", c, spec)
	if (err == nil) != (errAgain == nil) || err == nil && !sameView(v, again) {
		t.Fatalf("anew: %v %+v\nkept: %v %+v", err, v, errAgain, again)
	}
	if err != nil && (!errors.Is(err, convo.ErrTooLarge) || err.Error() != errAgain.Error()) {
		t.Fatalf("anew: %v; kept: %v", err, errAgain)
	}
	all := spec
	all.Strategy = convo.All
	whole, errWhole := c.View(all)
	fitted, ok, errFits := views.Fits("run", c, all)
	if ok != (errWhole == nil) || ok && !sameView(whole, fitted) || errFits != nil {
		t.Fatalf("anew: %v %+v\nfits: %v %v %+v", errWhole, whole, ok, errFits, fitted)
	}
	if err != nil {
		return c.Marks
	}
	return v.Marks
}

// A turn's view is of a lane, whose messages come into the context as copies
// with ids of their own, or do not come at all.
func TestViewContinuesAfterReplacedMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
			spec.Strategy = convo.All
		}
		views := convo.NewViews(2)
		c := convo.Context{ID: "c"}
		for range rapid.IntRange(1, 20).Draw(t, "turns") {
			lane := c
			for range rapid.IntRange(1, 3).Draw(t, "steps") {
				lane.History = lane.History.Append(drawMessages(t, rapid.IntRange(1, 3).Draw(t, "more"))...)
				lane.Marks = viewBothWays(t, views, lane, spec)
			}
			if rapid.Bool().Draw(t, "kept") {
				own, err := lane.AddedSince(c.History.Len())
				if err != nil {
					t.Fatal(err)
				}
				c.History, c.Marks = c.History.Append(own...), lane.Marks
			}
			c.History = c.History.Append(drawMessages(t, 1)...)
			c.Marks = viewBothWays(t, views, c, spec)
		}
	})
}

func TestViewIsNotChangedByLaterViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		views := convo.NewViews(0)
		c := convo.Context{ID: "c"}
		var seen []convo.View
		var copies [][]convo.Message
		for range rapid.IntRange(2, 20).Draw(t, "steps") {
			lane := c
			lane.History = lane.History.Append(drawMessages(t, rapid.IntRange(1, 3).Draw(t, "more"))...)
			if v, err := views.View("run", lane, spec); err == nil {
				lane.Marks = v.Marks
				seen, copies = append(seen, v), append(copies, append([]convo.Message(nil), v.Messages...))
			}
			if rapid.Bool().Draw(t, "kept") {
				c = lane
			}
		}
		for i, v := range seen {
			for j := range v.Messages {
				if !v.Messages[j].Equal(copies[i][j]) {
					t.Fatalf("message %d of view %d is now %+v, and was %+v", j, i, v.Messages[j], copies[i][j])
				}
			}
		}
	})
}
