package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

func TestTheAuditLogIsListedAndVerified(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := auditlog.New(s, auditlog.Options{}).Record(t.Context(), auditlog.Entry{
		Via: "api", User: hostileText, Token: hostileText, Action: hostileText, Objects: map[string]string{"run": hostileText}, Status: 409, Code: hostileText,
	}); err != nil {
		t.Fatal(err)
	}
	call := sessionsCaller(t, path)
	call(0, "token ", "tokens", "create", "--user", "ada", "--scope", "read")
	call(0, "user ada: viewer", "users", "set", "ada", "--role", "viewer")
	call(0, "weir users  disabled false, role viewer, user ada", "audit", "--limit", "1")
	call(0, `"action":"weir tokens create","objects":{"scopes":"read","token":`, "audit", "--json", "--object", "ada", "--since", "1h")
	call(0, "refused", "audit", "--outcome", "refused")
	call(0, "no entries", "audit", "--outcome", "failed")
	call(2, "--outcome", "audit", "--outcome", "bad")
	call(2, "--limit", "audit", "--limit", "0")
	call(0, "entries verified: 3, in 3 chains", "audit", "--verify")
	docs, err := s.Documents(t.Context(), store.DocumentFilter{Kind: store.AuditKind, Limit: 1})
	if err != nil || len(docs) != 1 {
		t.Fatal(len(docs), err)
	}
	docs[0].Body = json.RawMessage(strings.Replace(string(docs[0].Body), "weir users", "weir other", 1))
	if _, err := s.PutDocument(t.Context(), docs[0]); err != nil {
		t.Fatal(err)
	}
	call(1, "was changed", "audit", "--verify")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// hostileText is what a text must not do to a terminal: set its title, clear it, move the
// cursor, hide what follows, ask it for answers, ring, and reverse the order of
// characters; with ESC, with the C1 controls, with a colour that the program does not use, and half a sequence at its end.
const hostileText = "A\x1b]0;title\x07\x1b[2J\x1b[5A\x1b[8mB\u009b2J\u009d0;x\u009cC\rD\b\x1b[6n\x1bP+q\x1b\\\u202eE\x7f\x1b[96mF\x1b[1;96mG\x1b["
