package convo_test

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/shareddata"
)

func TestCleanAppliesItsOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, want string
		o              convo.CleanOptions
	}{
		{"system messages and what is broken", "s u a1 t1 -2 a t9 s u", "u a1 t1 a u", convo.CleanOptions{}},
		{"system messages kept", "s u s a", "s u s a", convo.CleanOptions{KeepSystem: true}},
		{"calls and results", "u a1 t1 -2,3 t3 t2 a u", "u a a u", convo.CleanOptions{Tools: convo.ToolsDropped}},
		{"the text of results", "u a1 t1 a", "u a1 t1 a", convo.CleanOptions{Tools: convo.ToolsCleared}},
		{"the first query", "s u u a u", "u a u", convo.CleanOptions{SkipQuery: true}},
		{"the first query, after an answer", "a u a u", "a a u", convo.CleanOptions{SkipQuery: true}},
		{"all but two", "u a u a u", "a u", convo.CleanOptions{Last: 2}},
		{"more than there are", "u a u", "u a u", convo.CleanOptions{Last: 9}},
		{"a group that does not fit", "u -1,2 t1 t2 a u", "a u", convo.CleanOptions{Last: 4}},
		{"a group that fits", "u -1,2 t1 t2 a u", "-1,2 t1 t2 a u", convo.CleanOptions{Last: 5}},
		{"never the last group", "u a u -1,2 t1 t2", "-1,2 t1 t2", convo.CleanOptions{Last: 1}},
		{"the last without the first query, which is older", "u a u a", "u a", convo.CleanOptions{Last: 2, SkipQuery: true}},
		{"nothing left", "s u", "", convo.CleanOptions{SkipQuery: true}},
		{"nothing there", "", "", convo.CleanOptions{Merge: true, Last: 3}},
		{"merged around calls", "u u a a1 t1 a a u", "u a1 t1 a u", convo.CleanOptions{Merge: true}},
		{"merged where calls went", "u a1 t1 a u", "u a u", convo.CleanOptions{Merge: true, Tools: convo.ToolsDropped}},
		{"merged and then counted", "u u u a a u u", "a u", convo.CleanOptions{Merge: true, Last: 2}},
	} {
		in := parseSketch(c.in)
		before := slices.Clone(in)
		out := convo.Clean(in, c.o)
		if got := formatSketch(out); got != c.want {
			t.Errorf("%s: %q is cleaned to %q, want %q", c.name, c.in, got, c.want)
		}
		if !sameMessages(in, before) {
			t.Errorf("%s: cleaning changed its input to %q", c.name, formatSketch(in))
		}
	}
}

func TestCleanDropsEmptyMessagesAndUnknownRoles(t *testing.T) {
	t.Parallel()
	in := []convo.Message{
		{Role: convo.User, Text: " \n"},
		{Role: convo.User, Parts: []convo.Part{{Kind: "image"}}},
		{Role: "robot", Text: "beep"},
		{Role: convo.Assistant, Text: "\t", Reasoning: "hm"},
		{Role: convo.Assistant, Native: []byte(`[1]`), Provider: "openai"},
	}
	if got := formatSketch(convo.Clean(in, convo.CleanOptions{})); got != "u -" {
		t.Errorf("cleaned to %q", got)
	}
	if got := formatSketch(convo.Clean(in, convo.CleanOptions{DropNative: true})); got != "u" {
		t.Errorf("cleaned to %q without native blocks", got)
	}
	if got := formatSketch(convo.Clean(in[:2], convo.CleanOptions{SkipQuery: true})); got != "" {
		t.Errorf("the query is the first that says something: %q", got)
	}
}

func TestCleanDropsReasoningAndNativeBlocks(t *testing.T) {
	t.Parallel()
	in := parseSketch("u a1 t1")
	in[1].Reasoning, in[1].Native, in[1].Provider = "hm", []byte(`[1]`), "openai"
	for _, c := range []struct {
		o    convo.CleanOptions
		want string
	}{
		{convo.CleanOptions{}, "hm [1] openai"},
		{convo.CleanOptions{DropReasoning: true}, "  "},
		{convo.CleanOptions{DropNative: true}, "hm  "},
		{convo.CleanOptions{Tools: convo.ToolsCleared}, "hm [1] openai"},
		{convo.CleanOptions{Tools: convo.ToolsDropped}, "hm  "},
	} {
		m := convo.Clean(in, c.o)[1]
		if got := fmt.Sprintf("%s %s %s", m.Reasoning, m.Native, m.Provider); got != c.want {
			t.Errorf("%+v leaves %q, want %q", c.o, got, c.want)
		}
	}
}

func TestClearedResultHasAPlaceholder(t *testing.T) {
	t.Parallel()
	in := parseSketch("u a1,2 t1 t2")
	in[2].Parts, in[2].Failed, in[2].Name = []convo.Part{{Kind: "image"}}, true, "look"
	out := convo.Clean(in, convo.CleanOptions{Tools: convo.ToolsCleared})
	want := convo.Message{ID: "2", Role: convo.Tool, CallID: "1", Name: "look", Failed: true, Text: "[This result was left out.]"}
	if !out[2].Equal(want) || out[3].Text != want.Text {
		t.Errorf("cleared: %+v", out[2:])
	}
}

func TestPinnedMessagesKeepTheirGroups(t *testing.T) {
	t.Parallel()
	in := parseSketch("s u a1,2 t1 t2 a s u a")
	for _, i := range []int{0, 1, 4} {
		in[i].Pinned = true
	}
	o := convo.CleanOptions{Tools: convo.ToolsDropped, SkipQuery: true, Last: 1, Merge: true}
	out := convo.Clean(in, o)
	if got := formatSketch(out); got != "s u a1,2 t1 t2 a" || out[5].ID != "8" {
		t.Errorf("cleaned to %q", got)
	}
	o.IgnorePins = true
	if got := formatSketch(convo.Clean(in, o)); got != "a" {
		t.Errorf("cleaned to %q without regard to pins", got)
	}
	cleared := convo.Clean(in, convo.CleanOptions{Tools: convo.ToolsCleared})
	if cleared[3].Text != "done" {
		t.Errorf("a result of a pinned group says %q", cleared[3].Text)
	}
}

func TestMergedMessageHoldsAllTexts(t *testing.T) {
	t.Parallel()
	in := []convo.Message{
		{ID: "1", Role: convo.Assistant, Text: "a", Reasoning: "x", Priority: 70, Metadata: convo.Metadata{"k": "1"}},
		{ID: "2", Role: convo.Assistant, Parts: []convo.Part{{Kind: "file", Name: "f"}}, Native: []byte(`[1]`), Provider: "p", Text: "b"},
		{ID: "3", Role: convo.Assistant, Calls: []convo.Call{{ID: "c", Name: "n"}}, Reasoning: "y", Metadata: convo.Metadata{"k": "2", "l": "3"}},
		{ID: "4", Role: convo.Tool, CallID: "c"},
	}
	want := convo.Message{
		ID: "1", Role: convo.Assistant, Text: "a\n\nb", Reasoning: "x\n\ny", Priority: 70,
		Parts: in[1].Parts, Calls: in[2].Calls, Metadata: convo.Metadata{"k": "1", "l": "3"},
	}
	out := convo.Clean(in, convo.CleanOptions{Merge: true})
	if len(out) != 2 || !out[0].Equal(want) {
		t.Errorf("merged to %+v", out)
	}
	if len(in[0].Metadata) != 1 {
		t.Error("merging changed the metadata of a message")
	}
	for _, change := range []func(*convo.Message){
		func(m *convo.Message) { m.Pinned = true },
		func(m *convo.Message) { m.Name = "ann" },
	} {
		two := parseSketch("u u")
		change(&two[1])
		if out := convo.Clean(two, convo.CleanOptions{Merge: true}); len(out) != 2 {
			t.Errorf("merged to %+v", out)
		}
	}
}

func TestHistoryCleanUsesNewestVersions(t *testing.T) {
	t.Parallel()
	h := convo.History{}.Append(parseSketch("s u a")...)
	h = h.Append(convo.Message{ID: "1", Role: convo.User, Text: "hello"})
	out, err := h.Clean(convo.CleanOptions{})
	if err != nil || out.Len() != 2 || out.At(0).Text != "hello" || out.Versions() || h.Len() != 4 {
		t.Errorf("%d messages, the first %q: %v", out.Len(), out.At(0).Text, err)
	}
}

// allCleanOptions returns all combinations of options.
func allCleanOptions() []convo.CleanOptions {
	var out []convo.CleanOptions
	for _, last := range []int{0, 1, 5, 14} {
		for _, tools := range []convo.ToolCleaning{convo.ToolsKept, convo.ToolsCleared, convo.ToolsDropped} {
			for n := range 1 << 6 {
				out = append(out, convo.CleanOptions{
					Last: last, Tools: tools, KeepSystem: n&1 != 0, DropReasoning: n&2 != 0, DropNative: n&4 != 0,
					SkipQuery: n&8 != 0, Merge: n&16 != 0, IgnorePins: n&32 != 0,
				})
			}
		}
	}
	return out
}

// checkCleaned holds a cleaned list to what is promised of all.
func checkCleaned(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, in []convo.Message, o convo.CleanOptions,
) {
	t.Helper()
	out := convo.Clean(in, o)
	if err := convo.Validate(out); err != nil {
		t.Fatalf("%+v: %q is cleaned to %q: %v", o, formatSketch(in), formatSketch(out), err)
	}
	again := o
	again.SkipQuery = false
	if twice := convo.Clean(out, again); !sameMessages(out, twice) {
		t.Fatalf("%+v: %q is cleaned to %q and then to %q", o, formatSketch(in), formatSketch(out), formatSketch(twice))
	}
	at, pins := 0, 0
	for _, m := range out {
		for at < len(in) && in[at].ID != m.ID {
			at++
		}
		if at == len(in) {
			t.Fatalf("%+v: %q is cleaned to %q: not in order", o, formatSketch(in), formatSketch(out))
		}
		if m.Pinned {
			pins++
		}
		switch {
		case m.Role == convo.System && !o.KeepSystem && (!m.Pinned || o.IgnorePins),
			o.DropReasoning && m.Reasoning != "", (o.DropReasoning || o.DropNative) && len(m.Native) > 0:
			t.Fatalf("%+v leaves %+v", o, m)
		}
	}
	if want := countKeptPins(in, o); !o.IgnorePins && pins != want {
		t.Fatalf("%+v: %d pinned messages of %d stay in %q", o, pins, want, formatSketch(out))
	}
}

// countKeptPins counts the pinned messages that are valid and say something.
func countKeptPins(in []convo.Message, o convo.CleanOptions) int {
	n := 0
	for _, m := range convo.Repair(in) {
		native := len(m.Native) > 0 && !o.DropNative && !o.DropReasoning
		if m.Pinned && (m.Role == convo.Tool || m.Text != "" || len(m.Calls) > 0 || native) {
			n++
		}
	}
	return n
}

func TestCleanIsValidAndIdempotentOnRealConversations(t *testing.T) {
	t.Parallel()
	f := shareddata.Open(t, shareddata.Airline)
	ways := allCleanOptions()
	conversations := 0
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		conversations++
		ms := withDefects(realMessages(t, in.Bytes()), conversations)
		for _, o := range ways {
			checkCleaned(t, ms, o)
		}
	}
	if err := in.Err(); err != nil || conversations != 120 {
		t.Errorf("%d conversations: %v", conversations, err)
	}
}

// withDefects returns a conversation with what the real ones do not have: system messages,
// reasoning, native blocks, pins, a run of messages, results that are missing.
func withDefects(ms []convo.Message, seed int) []convo.Message {
	out := []convo.Message{{Role: convo.System, Text: "Be kind.", Pinned: seed%5 == 0}}
	for i, m := range ms {
		n := seed*31 + i*17
		m.Pinned = n%11 == 0
		if m.Role == convo.Assistant {
			m.Reasoning = "Let me think."
			if n%3 == 0 {
				m.Native, m.Provider = []byte(`[{"type":"reasoning"}]`), "openai"
			}
		}
		if m.Role == convo.Tool && n%7 == 0 {
			continue
		}
		out = append(out, m)
		if m.Role == convo.User && n%4 == 0 {
			out = append(out, convo.Message{Role: convo.User, Text: "And hurry."})
		}
	}
	for i := range out {
		out[i].ID = fmt.Sprint(i)
	}
	return out
}

func TestCleanIsValidAndIdempotent(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"s", "u", "u", "a", "-", "a1", "-1,2", "a2,3", "-1,1", "t1", "t2", "t3", "a?"})
	ways := rapid.SampledFrom(allCleanOptions())
	rapid.Check(t, func(t *rapid.T) {
		in := parseSketch(strings.Join(rapid.SliceOfN(word, 0, 16).Draw(t, "messages"), " "))
		for i := range in {
			n := rapid.IntRange(0, 30).Draw(t, "kind")
			in[i].Pinned = n%5 == 0
			if n%7 == 0 && in[i].Role == convo.Assistant {
				in[i].Native, in[i].Reasoning = []byte(`[1]`), "hm"
			}
		}
		checkCleaned(t, in, ways.Draw(t, "options"))
	})
}

// longConversation returns a conversation of n messages.
func longConversation(n int) []convo.Message {
	ms := make([]convo.Message, 0, n)
	for i := 0; len(ms) < n; i++ {
		call := fmt.Sprint("call", i)
		ms = append(ms,
			convo.Message{Role: convo.User, Text: "What is the state of my flight?\nIt leaves at noon."},
			convo.Message{Role: convo.User, Text: "And hurry."},
			convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: call, Name: "look", Arguments: `{"flight":"HAT1"}`}}},
			convo.Message{Role: convo.Tool, CallID: call, Name: "look", Text: strings.Repeat("late ", 40)},
			convo.Message{Role: convo.Assistant, Text: "It is late."})
	}
	return ms[:n]
}

func TestCleanAndFormatAllocateLinearly(t *testing.T) {
	small, large := longConversation(10_000), longConversation(100_000)
	for name, do := range map[string]func([]convo.Message){
		"clean":   func(ms []convo.Message) { convo.Clean(ms, convo.CleanOptions{Last: 50_000, Tools: convo.ToolsCleared}) },
		"merge":   func(ms []convo.Message) { convo.Clean(ms, convo.CleanOptions{Merge: true}) },
		"show":    func(ms []convo.Message) { convo.Format(ms, convo.FormatOptions{MaxResult: 100}) },
		"shorten": func(ms []convo.Message) { convo.Format(ms, convo.FormatOptions{Markdown: true}) },
	} {
		few := testing.AllocsPerRun(1, func() { do(small) })
		many := testing.AllocsPerRun(1, func() { do(large) })
		if many > 11*few+100 || many > 500_000 {
			t.Errorf("%s: %.0f allocations for 10,000 messages, %.0f for 100,000", name, few, many)
		}
		t.Logf("%s: %.0f, %.0f", name, few, many)
	}
}

func BenchmarkClean(b *testing.B) {
	ms := longConversation(100_000)
	b.ReportAllocs()
	for b.Loop() {
		convo.Clean(ms, convo.CleanOptions{Tools: convo.ToolsDropped, DropReasoning: true, Merge: true, Last: 1000})
	}
}

func BenchmarkFormat(b *testing.B) {
	ms := longConversation(100_000)
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(convo.Format(ms, convo.FormatOptions{MaxResult: 100}))))
	}
}
