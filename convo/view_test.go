package convo_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/shareddata"
)

// wordCounter counts four bytes as a token, and four tokens a message.
type wordCounter struct{}

func (wordCounter) Message(m convo.Message) int {
	n := len(m.Text) + len(m.Name) + len(m.CallID)
	for _, c := range m.Calls {
		n += len(c.ID) + len(c.Name) + len(c.Arguments)
	}
	return 4 + (n+3)/4
}

func (wordCounter) Head(text string, n int) string { return text[:min(len(text), 4*n)] }
func (wordCounter) Tail(text string, n int) string { return text[max(len(text)-4*n, 0):] }

func tokensOf(ms []convo.Message) (n int) {
	for _, m := range ms {
		n += wordCounter{}.Message(m)
	}
	return n
}

// drawMessages draws a piece of a conversation, broken here and there.
func drawMessages(t *rapid.T, n int) []convo.Message {
	var out []convo.Message
	for len(out) < n {
		text := strings.Repeat("word ", rapid.IntRange(1, 60).Draw(t, "length"))
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2:
			out = append(out, convo.Message{Role: convo.User, Text: text, Pinned: rapid.IntRange(0, 9).Draw(t, "pin") == 0})
		case 3, 4:
			out = append(out, convo.Message{Role: convo.Assistant, Text: text})
		case 5:
			out = append(out, convo.Message{Role: convo.Tool, CallID: "stray", Text: text})
		case 6:
			out = append(out, convo.Message{Role: convo.System, Text: "Rule: " + text[:5]})
		default:
			calls := rapid.IntRange(1, 3).Draw(t, "calls")
			m := convo.Message{Role: convo.Assistant}
			for i := range calls {
				m.Calls = append(m.Calls, convo.Call{ID: fmt.Sprint("c", i), Name: "look", Arguments: `{"q":1}`})
			}
			out = append(out, m)
			for _, c := range m.Calls[:rapid.IntRange(0, calls).Draw(t, "answered")] {
				long := strings.Repeat(text, rapid.IntRange(1, 9).Draw(t, "times"))
				out = append(out, convo.Message{Role: convo.Tool, CallID: c.ID, Name: c.Name, Text: long})
			}
		}
		if rapid.IntRange(0, 4).Draw(t, "prioritised") == 0 {
			out[len(out)-1].Priority = rapid.IntRange(1, 100).Draw(t, "priority")
		}
	}
	return out
}

func drawSpec(t *rapid.T) convo.ViewSpec {
	return convo.ViewSpec{
		Room: rapid.IntRange(100, 3000).Draw(t, "room"), Count: wordCounter{},
		Low:         rapid.IntRange(0, 90).Draw(t, "low"),
		KeepResults: rapid.IntRange(-1, 4).Draw(t, "keep"),
		MaxResult:   rapid.SampledFrom([]int{0, 90, 400}).Draw(t, "most"),
		Reader:      rapid.SampledFrom([]string{"", "weir_result"}).Draw(t, "reader"),
	}
}

// requiredTexts returns the texts that a view may not leave out.
func requiredTexts(t *rapid.T, c convo.Context) map[string]bool {
	out := make(map[string]bool)
	ms, err := c.Messages()
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range ms {
		if m.Role == convo.System || m.Pinned && m.Role == convo.User {
			out[m.Text] = true
		}
		newest := !slices.ContainsFunc(ms[i+1:], func(o convo.Message) bool { return o.Role == convo.User })
		if m.Role == convo.User && newest {
			out[m.Text] = true
		}
	}
	return out
}

func checkView(t *rapid.T, c convo.Context, spec convo.ViewSpec, v convo.View) {
	if err := convo.Validate(v.Messages); err != nil {
		t.Fatalf("not valid: %v", err)
	}
	if n := tokensOf(v.Messages); n > spec.Room || n != v.Tokens {
		t.Fatalf("%d tokens, said to be %d, room %d", n, v.Tokens, spec.Room)
	}
	for text := range requiredTexts(t, c) {
		if !slices.ContainsFunc(v.Messages, func(m convo.Message) bool { return m.Text == text }) {
			t.Fatalf("not in the view: %q", text)
		}
	}
}

func TestViewsAreValidFitAndKeepPins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		views := convo.NewViews(2)
		c := convo.Context{ID: "c"}
		var before convo.View
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			c.History = c.History.Append(drawMessages(t, rapid.IntRange(1, 4).Draw(t, "more"))...)
			if rapid.IntRange(0, 30).Draw(t, "reset") == 0 {
				c, _ = c.Apply(convo.Change{Reset: true})
				c.History = c.History.Append(convo.Message{Role: convo.User, Text: "anew"})
			}
			v, err := c.View(spec)
			again, errAgain := views.View("run", c, spec)
			if (err == nil) != (errAgain == nil) || !sameView(v, again) {
				t.Fatalf("anew: %v %+v\nkept: %v %+v", err, v, errAgain, again)
			}
			if err != nil {
				if !errors.Is(err, convo.ErrTooLarge) {
					t.Fatal(err)
				}
				continue
			}
			checkView(t, c, spec, v)
			if v.Manifest.Reason == "" && before.Messages != nil && reflect.DeepEqual(before.Marks, v.Marks) {
				checkPrefix(t, before.Messages, v.Messages)
			}
			c.Marks, before = v.Marks, v
		}
	})
}

func sameView(a, b convo.View) bool {
	return reflect.DeepEqual(a.Messages, b.Messages) && a.Tokens == b.Tokens && reflect.DeepEqual(a.Marks, b.Marks) &&
		reflect.DeepEqual(a.Need, b.Need) && reflect.DeepEqual(a.Manifest, b.Manifest)
}

// checkPrefix: what the last view showed is shown again, but for its last
// group, to which results may have come.
func checkPrefix(t *rapid.T, old, now []convo.Message) {
	last := len(old) - 1
	for last > 0 && old[last].Role == convo.Tool {
		last--
	}
	for i := range max(last, 0) {
		if i >= len(now) || !old[i].Equal(now[i]) {
			t.Fatalf("message %d is another than in the view before", i)
		}
	}
}

// TestContinuedViewsShareTheirMessages replaces the newest message of a conversation, as the
// commit of a turn does: by an equal one, and by another. The earlier view stays as it was.
func TestContinuedViewsShareTheirMessages(t *testing.T) {
	said := func(text string) convo.Message { return convo.Message{ID: text, Role: convo.User, Text: text} }
	shared := convo.Context{ID: "c"}
	for i := range 100 {
		shared.History = shared.History.Append(said(fmt.Sprint("m", i)))
	}
	for _, newest := range []string{"asked", "asked otherwise"} {
		t.Run(newest, func(t *testing.T) {
			views, spec := convo.NewViews(2), convo.ViewSpec{Room: 3000, Count: wordCounter{}}
			view := func(more ...convo.Message) convo.View {
				c := shared
				c.History = c.History.Append(more...)
				v, err := views.View("run", c, spec)
				if err != nil || len(v.Messages) != 100+len(more) {
					t.Fatal(len(v.Messages), err)
				}
				return v
			}
			view(said("asked")) // has room for more afterwards
			before := view(said("asked"), said("answered"))
			after := view(said(newest), said("answered"), said("asked again"))
			if before.Messages[100].Text != "asked" || after.Messages[100].Text != newest || after.Messages[102].Text != "asked again" {
				t.Errorf("the views have %q and %q", before.Messages[100].Text, after.Messages[100].Text)
			}
			if share := &before.Messages[0] == &after.Messages[0]; share != (newest == "asked") {
				t.Errorf("the views share their messages: %v", share)
			}
		})
	}
}

func TestViewShowsOnlyNewestVersions(t *testing.T) {
	m := convo.NewManager(convo.Context{ID: "c"}, true)
	for i := range 20 {
		if _, err := m.Add(convo.Message{ID: fmt.Sprint("m", i), Role: convo.User, Text: strings.Repeat("old ", 40)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Upsert(convo.Message{ID: "m0", Role: convo.User, Text: "new"}); err != nil {
		t.Fatal(err)
	}
	spec := convo.ViewSpec{Room: 300, Count: wordCounter{}}
	v, err := m.Get().View(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, msg := range v.Messages {
		if msg.ID == "m0" {
			t.Errorf("m0 is shown, which is older than the cut at %d", v.Marks.Cut)
		}
	}
	spec.Room = 3000
	if v, err = m.Get().View(spec); err != nil || v.Messages[0].Text != "new" || len(v.Messages) != 20 {
		t.Errorf("%d messages, the first %q, %v; want 20 with the new version first", len(v.Messages), v.Messages[0].Text, err)
	}
}

func TestSummaryCoversExactlyTheOmittedMessages(t *testing.T) {
	c := convo.Context{ID: "c"}
	for i := range 40 {
		c.History = c.History.Append(convo.Message{Role: convo.User, Text: fmt.Sprintf("said %02d %s", i, strings.Repeat("x", 90)), Pinned: i == 3})
	}
	spec := convo.ViewSpec{Room: 500, Count: wordCounter{}, Strategy: convo.Summarise}
	v, err := c.View(spec)
	if err != nil || v.Need == nil {
		t.Fatalf("no summary is asked for: %+v %v", v, err)
	}
	if v.Need.From != 0 || v.Need.To != v.Marks.Cut || len(v.Need.Messages) != v.Need.To-1 {
		t.Errorf("asked for %d to %d with %d messages; cut at %d", v.Need.From, v.Need.To, len(v.Need.Messages), v.Marks.Cut)
	}
	if c.Marks.Cut != 0 {
		t.Error("the context was changed")
	}
	c.Marks = v.Marks
	c.Marks.Summary = &convo.Summary{From: v.Need.From, To: v.Need.To, Text: "Much was said."}
	if v, err = c.View(spec); err != nil || v.Need != nil {
		t.Fatalf("%+v, %v", v.Need, err)
	}
	if v.Messages[0].Role != convo.User || !strings.Contains(v.Messages[0].Text, "Much was said.") || !v.Messages[1].Pinned {
		t.Errorf("the view begins with %+v", v.Messages[:2])
	}
	if got := v.Manifest; got.Summary == nil || got.Omitted != v.Marks.Cut-1 || got.From != v.Marks.Cut {
		t.Errorf("manifest %+v", got)
	}
}

func TestTooLargeErrorNamesTheLargestMessage(t *testing.T) {
	c := convo.Context{ID: "c"}
	c.History = c.History.Append(convo.Message{Role: convo.User, Text: strings.Repeat("x", 4000)})
	_, err := c.View(convo.ViewSpec{Room: 900, Count: wordCounter{}})
	var e *convo.TooLarge
	if !errors.As(err, &e) || e.Need != 1004 || e.Room != 900 || !strings.Contains(err.Error(), "104 too many") {
		t.Errorf("got %v", err)
	}
}

func TestRealConversationsFitEveryRoom(t *testing.T) {
	f := shareddata.Open(t, shareddata.Airline)
	views, tooLarge := 0, 0
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		c := convo.Context{ID: "c"}
		ms := realMessages(t, in.Bytes())
		for i := range ms {
			c.History = c.History.Append(ms[i])
			for _, room := range []int{500, 1000, 2000, 4000} {
				v, err := c.View(convo.ViewSpec{Room: room, Count: wordCounter{}, Reader: "weir_result"})
				if err != nil {
					tooLarge++
					continue
				}
				views++
				if err := convo.Validate(v.Messages); err != nil || v.Tokens > room {
					t.Fatalf("message %d, room %d: %d tokens, %v", i, room, v.Tokens, err)
				}
			}
		}
	}
	t.Logf("%d views, %d points at which nothing fits", views, tooLarge)
	if views < 10_000 || tooLarge > views/100 {
		t.Errorf("%d views, %d points at which nothing fits", views, tooLarge)
	}
}

// realMessages reads a line of the conversations, without its system message.
func realMessages(t *testing.T, line []byte) []convo.Message {
	t.Helper()
	var c struct {
		Messages []struct {
			Role       convo.Role
			Content    string
			ToolCallID string `json:"tool_call_id"`
			Name       string
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(line, &c); err != nil {
		t.Fatal(err)
	}
	var out []convo.Message
	for _, m := range c.Messages {
		if m.Role == convo.System {
			continue
		}
		n := convo.Message{Role: m.Role, Text: m.Content, CallID: m.ToolCallID, Name: m.Name}
		for _, call := range m.ToolCalls {
			n.Calls = append(n.Calls, convo.Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
		out = append(out, n)
	}
	return out
}

func TestSummaryIsNeededOnlyWhenItFits(t *testing.T) {
	c := convo.Context{ID: "c"}
	for range 40 {
		c.History = c.History.Append(convo.Message{Role: convo.User, Text: strings.Repeat("x", 100)})
	}
	c.History = c.History.Append(convo.Message{Role: convo.User, Text: strings.Repeat("x", 1500)})
	spec := convo.ViewSpec{Room: 400, Count: wordCounter{}, Strategy: convo.Summarise}
	v, err := c.View(spec)
	if !errors.Is(err, convo.ErrTooLarge) {
		t.Errorf("a summary of %d tokens is asked for beside a message of 379 in a room of 400: %v", v.Need.Tokens, err)
	}
	spec.Strategy = convo.Window
	if _, err := c.View(spec); err != nil {
		t.Errorf("without a summary: %v", err)
	}
}

// dotCounter counts ten tokens for a character that is in no text but ours.
type dotCounter struct{ wordCounter }

func (dotCounter) Message(m convo.Message) int {
	return wordCounter{}.Message(m) + 10*strings.Count(m.Text, "…")
}

func TestViewFailsOnlyWhenNothingMoreCanBeShortened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, least := convo.Context{ID: "c"}, 0
		m := convo.Message{Role: convo.Assistant}
		results := rapid.IntRange(1, 9).Draw(t, "results")
		for i := range results {
			m.Calls = append(m.Calls, convo.Call{ID: fmt.Sprint(i), Name: "look", Arguments: "{}"})
		}
		c.History = c.History.Append(convo.Message{Role: convo.User, Text: "Look."}, m)
		least += tokensOf([]convo.Message{c.History.At(0), m})
		for i := range results {
			r := convo.Message{Role: convo.Tool, CallID: fmt.Sprint(i), Text: strings.Repeat("x", rapid.IntRange(1, 2000).Draw(t, "length"))}
			c.History = c.History.Append(r)
			stub := r
			stub.Text = fmt.Sprintf("[This result was cleared to save room: %d tokens.]", dotCounter{}.Message(r))
			least += min(dotCounter{}.Message(r), dotCounter{}.Message(stub))
		}
		spec := convo.ViewSpec{Room: rapid.IntRange(50, 2000).Draw(t, "room"), Count: dotCounter{}}
		v, err := c.View(spec)
		if (err == nil) != (least <= spec.Room) || v.Tokens > spec.Room {
			t.Fatalf("%d tokens in a room of %d, where %d would do: %v", v.Tokens, spec.Room, least, err)
		}
	})
}
