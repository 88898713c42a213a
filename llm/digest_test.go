package llm

import (
	"crypto/sha256"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// A journal keeps the digest of the whole form: one that continues an earlier
// request must give the same.
func TestContinuedDigestEqualsDigestOfWholeRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept := new(digestCache)
		req := Request{Provider: "p", Model: "m", digests: kept, digestKey: digestKey{"r", "main"}}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			changeRequest(t, &req)
			checkDigest(t, &req)
		}
		if len(kept.byContext) != 1 {
			t.Fatalf("%d digests are kept", len(kept.byContext))
		}
	})
}

func drawWord() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{"", "a", `"messages":[]`, "<&>\u2028\\\"", "\x00\u00e9\U0001F600"}), rapid.String())
}

func drawMessage() *rapid.Generator[convo.Message] {
	word := drawWord()
	return rapid.Custom(func(t *rapid.T) convo.Message {
		m := convo.Message{
			ID: word.Draw(t, "id"), Role: rapid.SampledFrom([]convo.Role{convo.User, convo.Assistant, convo.Tool}).Draw(t, "role"),
			Text: word.Draw(t, "text"), Name: word.Draw(t, "name"), Failed: rapid.Bool().Draw(t, "failed"),
		}
		if rapid.Bool().Draw(t, "calls") {
			m.Calls = []convo.Call{{ID: word.Draw(t, "call"), Name: "f", Arguments: `{"a": 1}`}}
		}
		if rapid.Bool().Draw(t, "native") {
			m.Native, m.Provider = json.RawMessage(rapid.SampledFrom([]string{`[{"b":1,"a":2}]`, `[]`, `{"x":"<"}`}).Draw(t, "blocks")), "p"
		}
		return m
	})
}

// changeRequest changes a request as a conversation does, or as nothing should.
func changeRequest(t *rapid.T, req *Request) {
	word, message := drawWord(), drawMessage()
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		req.System = word.Draw(t, "system")
	case 1:
		req.Tools = append(req.Tools, Tool{Name: word.Draw(t, "tool")})
	case 2: // in place, as who owns the list may
		if n := len(req.Messages); n > 0 {
			req.Messages[rapid.IntRange(0, n-1).Draw(t, "which")] = message.Draw(t, "other")
		}
	case 3:
		req.Messages = req.Messages[rapid.IntRange(0, len(req.Messages)).Draw(t, "cut"):]
	default:
		req.Messages = append(req.Messages, rapid.SliceOfN(message, 1, 4).Draw(t, "more")...)
	}
}

func checkDigest(t *rapid.T, req *Request) {
	t.Helper()
	got, err := req.Digest()
	if err != nil {
		t.Fatal(err)
	}
	text, err := req.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := engine.AppendValue(nil, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256(whole); got != want {
		t.Fatalf("%x is not the digest %x of %s", got, want, text)
	}
}

func TestARequestWhoseNativeBlocksAreNotJSONHasNoDigest(t *testing.T) {
	req := Request{Messages: []convo.Message{{Role: convo.User}, {Role: convo.Assistant, Native: json.RawMessage("{")}}}
	_, err := req.Digest()
	_, want := req.Canonical()
	if err == nil || err.Error() != want.Error() {
		t.Errorf("%v, want %v", err, want)
	}
}
