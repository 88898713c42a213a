package llmtest

import (
	"slices"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// kept makes a turn that calls a tool in a stored conversation, and returns the request that continues it.
func kept(t *testing.T, x *conformanceTest) *llm.Request {
	t.Helper()
	x.Script(Turn{
		Reasoning: "Ask the tool.", Usage: llm.Usage{Reasoning: 12}, Text: "Looking.",
		Calls: []convo.Call{{ID: "call_1", Name: "weather", Arguments: `{"city":"Bern"}`}},
	})
	req := say("Weather in Bern?")
	req.System, req.Tools, req.Reasoning, req.KeepSession = "Be brief.", []llm.Tool{weather()}, "low", true
	h := x.ask(t, req)
	if (h.Session == "") != x.lacks(Sessions) {
		t.Fatalf("the session is %q", h.Session)
	}
	next := *req
	next.Messages, next.Session, next.HeldMessages = after(req, h, "rain"), h.Session, len(req.Messages)+1
	return &next
}

func testSession(t *testing.T, x *conformanceTest) {
	next := kept(t, x)
	if x.lacks(Sessions) {
		next.Session = "somebody's" // providers without sessions ignore it
	}
	x.Script(Text("It rains."), Text("It does."))
	h := x.ask(t, next)
	system := convo.Message{Role: convo.System, Text: next.System}
	if x.lacks(Sessions) {
		x.sameHistory(t, slices.Insert(slices.Clone(next.Messages), 0, system))
		return
	}
	if got := x.Last(); got.Session != next.Session || !got.Kept {
		t.Errorf("the session %q was named as %q, to be kept: %v", next.Session, got.Session, got.Kept)
	}
	x.sameHistory(t, []convo.Message{system, next.Messages[2]})
	equalJSON(t, "the tools", x.Last().Tools, next.Tools)
	last := *next
	last.Messages = append(after(next, h), convo.Message{Role: convo.User, Text: "Still?"})
	last.Session, last.HeldMessages = h.Session, len(last.Messages)-1
	if h.Session == "" || h.Session == next.Session {
		t.Fatalf("the session was %q and is %q", next.Session, h.Session)
	}
	x.ask(t, &last)
	x.sameHistory(t, []convo.Message{system, last.Messages[4]})
}

func testSessionLost(t *testing.T, x *conformanceTest) {
	x.needs(t, Sessions)
	next := kept(t, x)
	x.Forget()
	x.Script(Text("It rains."))
	if e := x.fail(t, next); e.Code != "model_session_lost" || e.Retry {
		t.Errorf("a session that is lost is %v, retry %v", e, e.Retry)
	}
	next.Session, next.HeldMessages = "", 0
	if h := x.ask(t, next); h.Message.Text != "It rains." {
		t.Errorf("the answer is %q", h.Message.Text)
	}
	x.sameHistory(t, slices.Insert(slices.Clone(next.Messages), 0, convo.Message{Role: convo.System, Text: next.System}))
	if got := x.Last(); got.Session != "" || nativeOf(got) == "" {
		t.Errorf("the whole history came with the session %q and the native blocks %q", got.Session, nativeOf(got))
	}
}

func testSessionUnasked(t *testing.T, x *conformanceTest) {
	x.Script(Text("One."))
	if h := x.ask(t, say("One?")); h.Session != "" || x.Last().Kept {
		t.Errorf("nobody asked to keep what is kept: %v, %q", x.Last().Kept, h.Session)
	}
	x.needs(t, Sessions)
	for _, held := range []int{-1, 0, 3, 4} {
		next := kept(t, x)
		next.HeldMessages = held
		x.Script(Text("It rains."))
		x.ask(t, next)
		if got := x.Last(); got.Session != "" || len(got.Messages) != 4 {
			t.Errorf("held %d of 3: %d messages came with the session %q", held, len(got.Messages), got.Session)
		}
	}
}
