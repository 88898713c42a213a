package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
)

// TestEachRoundLogsItsCostWithoutContent reads the log of a
// session of three rounds.
func TestEachRoundLogsItsCostWithoutContent(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, err := weir.Open(weir.Options{
		Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}},
		Logger:    slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("talk.yaml", []byte(weirkit.TalkFlow))
	if err != nil {
		t.Fatal(err)
	}
	s := weirkit.OpenSession(t, w, f)
	for range 3 {
		weirkit.SendAndWait(t, s, "a word that is nobody's business", weir.SendOptions{})
	}
	if err := w.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "nobody's business") {
		t.Error("the log holds what was said")
	}
	round := 0
	for line := range strings.Lines(log.String()) {
		var entry struct {
			Msg, Run, Flow, Session, Status string
			Round, Calls, Input             int
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Msg != "execution ended" {
			continue
		}
		round++
		if entry.Round != round || entry.Session != s.ID || entry.Run == "" || entry.Flow != "talk" || entry.Status != "completed" || entry.Calls != 1 || entry.Input != 10 {
			t.Errorf("line %d: %s", round, line)
		}
	}
	if round != 3 {
		t.Errorf("%d lines for 3 rounds:\n%s", round, log.String())
	}
}
