package e2b

import (
	"strings"
	"testing"
)

func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"", "\n", `{"type":"stdout","text":"a\nb"}` + "\n" + `{"type":"end_of_execution"}`, `{"type":"error","name":"X"}`,
		`{"type":"stderr","text":"` + strings.Repeat("ü", 60) + `"}`, `{"type":5}`, `[]`, `{"type":"keepalive"}` + "\n{",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const most = 100
		s := &stream{most: most}
		fault := s.read(strings.NewReader(text), "i1")
		if s.stdout.Len() > most || s.stderr.Len() > most {
			t.Errorf("%d and %d bytes are kept", s.stdout.Len(), s.stderr.Len())
		}
		if fault == nil && !s.ended {
			t.Error("a stream without an end is taken for a whole one")
		}
		if fault != nil && fault.Code == "" {
			t.Error("an error without a code")
		}
	})
}
