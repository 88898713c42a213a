//go:build !postgres

package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestAProgramWithoutPostgreSQLSaysHowToBuildOne(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"runs"}, {"show", "x"}, {"doctor"}, {"verify", "--all"}, {"tokens", "list"}} {
		var out, stderr bytes.Buffer
		args = append([]string{"--db", "postgres://weir:geheim@db.example/weir"}, args...)
		if code := command(t.Context(), args, terminal{strings.NewReader(""), &out, &stderr}); code == 0 {
			t.Errorf("%v succeeded", args[2:])
		}
		text := out.String() + stderr.String()
		if !strings.Contains(text, "go build -tags postgres") || strings.Contains(text, "geheim") {
			t.Errorf("%v: %s", args[2:], text)
		}
	}
}
