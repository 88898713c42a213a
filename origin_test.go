package weir_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
)

func TestOriginIsValidatedAndRecorded(t *testing.T) {
	t.Parallel()
	w, f := weirkit.OpenTalk(t, "", &weirkit.RepeatingModel{}, weirkit.TalkFlow)
	for _, bad := range []string{
		"schedule", "schedule:", "file:", "webhook", "Cron", "a b", ":x", "x:", "file:a\nb", "file:\xff",
		"file:" + strings.Repeat("x", 200),
	} {
		var e *weir.Error
		_, err := w.Start(t.Context(), f, weir.Start{Inputs: map[string]any{"message": "hello"}, Origin: bad})
		if !errors.As(err, &e) || e.Code != engine.CodeInput || e.Hint == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"", "cli", "schedule:nightly", "file:inbox/a b.pdf", "webhook:orders:paid", "my-kind", "test"} {
		run, err := w.Start(t.Context(), f, weir.Start{Inputs: map[string]any{"message": "hello"}, Origin: good})
		if err != nil {
			t.Errorf("%q: %v", good, err)
			continue
		}
		weirkit.Wait(t, run)
		v, err := w.Inspect(t.Context(), run.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := w.Runs(t.Context(), store.Filter{Limit: 1})
		if good == "" {
			good = "go"
		}
		if err != nil || v.Run.Start.Origin != good || rows[0].Origin != good {
			t.Errorf("%q: the journal has %q, the row %+v %v", good, v.Run.Start.Origin, rows[0].Origin, err)
		}
	}
	s := weirkit.OpenSession(t, w, f)
	if _, err := s.Send(t.Context(), "hello", weir.SendOptions{Origin: "webhook"}); err == nil {
		t.Error("a message of a webhook that has no name")
	}
	state := weirkit.SendAndWait(t, s, "hello", weir.SendOptions{Origin: "webhook:orders"})
	if v, err := w.Inspect(t.Context(), state.Run, 0); err != nil || v.Run.Start.Origin != "webhook:orders" {
		t.Errorf("%+v %v", v.Run.Start, err)
	}
	run, err := w.Rerun(t.Context(), state.Run, weir.RerunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	weirkit.Wait(t, run)
	if v, err := w.Inspect(t.Context(), run.ID, 0); err != nil || v.Run.Start.Origin != "rerun" {
		t.Errorf("%+v %v", v.Run.Start, err)
	}
}
