//go:build unix

package postgres

import (
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
)

// TestViewsShowTextsThatPostgreSQLCannotKeep: JSON of events may have the character NUL, numbers beyond every type of
// PostgreSQL, and backslashes before "u0000".
func TestViewsShowTextsThatPostgreSQLCannotKeep(t *testing.T) {
	server := pgtest.Start(t)
	s := openAt(t, server.Schema(t), Options{MaxConnections: 1})
	for json, want := range map[string]string{
		`"a\u0000b"`:           "a\uFFFDb",
		`"\u0000\u0000"`:       "\uFFFD\uFFFD",
		`"\\u0000"`:            `\u0000`,
		`"\\\u0000"`:           "\\\uFFFD",
		`"\\\\u0000\u0000"`:    `\\u0000` + "\uFFFD",
		`"\u000012"`:           "\uFFFD12",
		`1e400`:                "1e400",
		`18446744073709551617`: "18446744073709551617",
		`"ü\u0001"`:            "ü\x01",
	} {
		var got string
		if err := s.queryRow(t.Context(), []any{&got}, "SELECT weir_json($1) #>> '{}'", []byte(json)); err != nil || got != want {
			t.Errorf("%s is shown as %q, want %q (%v)", json, got, want, err)
		}
	}
	for _, c := range []struct{ reducer, old, value, want string }{
		{"sum", "1", "2", "3"},
		{"sum", "-5", "2", "-3"},
		{"sum", "9223372036854775807", "1", "9.223372036854776e+18"},
		{"sum", "0.1", "0.2", "0.30000000000000004"},
		{"sum", "1.5", "1.5", "3.0"},
		{"sum", "1", "2.0", "3.0"},
		{"max", "1", "1.5", "1.5"},
		{"max", "2.0", "2", "2.0"},
		{"min", "-1e300", "1", "-1e300"},
		{"append", "[]", "[1]", "[1]"},
		{"append", "[1]", "[]", "[1]"},
		{"append", "1", `"x"`, `[1,"x"]`},
		{"append", "null", "{}", "[{}]"},
		{"merge", `{"b":1}`, `{"a":[1]}`, `{"a":[1],"b":1}`},
		{"merge", `{"$":{"$x":1}}`, `{"a":2}`, `{"$x":1,"a":2}`},
		{"merge", `{}`, `{"$":{"$x":1}}`, `{"$":{"$x":1}}`},
		{"merge", `{"$":{"$":{}}}`, `{}`, `{"$":{"$":{}}}`},
		{"merge", `{}`, `{}`, `{}`},
		{"merge", `null`, `{"a":1}`, `{"a":1}`},
		{"", "1", "null", "null"},
		{"replace", "1", "2", "2"},
	} {
		var got string
		if err := s.queryRow(t.Context(), []any{&got}, "SELECT weir_reduce($1, $2, $3)", c.reducer, c.old, c.value); err != nil || got != c.want {
			t.Errorf("%s of %s and %s: %s, want %s (%v)", c.reducer, c.old, c.value, got, c.want, err)
		}
	}
}
