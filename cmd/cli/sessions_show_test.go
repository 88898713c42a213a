package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

// cutOffModel streams the beginning of an answer and waits until its call is cancelled.
type cutOffModel struct{ streamed chan struct{} }

func (m cutOffModel) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	emit(llm.Chunk{Text: "Berth 7 is free from"})
	close(m.streamed)
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestSessionShowsAnswersThatWereCutOff(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := cutOffModel{make(chan struct{})}
	w, err := weir.Open(weir.Options{Store: s, Providers: map[string]weir.Provider{"p": m}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("talk.yaml", []byte("weir: 1\nname: talk\ncontext: {model: p/m}\ninputs: {message: {type: text, required: true}}\n"+
		"nodes: {say: {type: llmRequest, in: {message: \"{{ run.inputs.message }}\"}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	session, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := session.Send(t.Context(), "Is a berth free?", weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-m.streamed
	if err := turn.Cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	if r, err := turn.Wait(t.Context()); err != nil || r.Status != weir.Cancelled {
		t.Fatalf("%v, %v", r.Status, err)
	}
	if err := w.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ option, want string }{
		{"", "Berth 7 is free from"}, {"--messages", "Berth 7 is free from"}, {"--json", `"round":1,"node":"say","text":"Berth 7 is free from"}]`},
	} {
		args := []string{"--db", path, "sessions", "show", session.ID}
		if c.option != "" {
			args = append(args, c.option)
		}
		var out, notes bytes.Buffer
		if got := command(t.Context(), args, terminal{strings.NewReader(""), &out, &notes}); got != 0 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %d\n%s%s", c.option, got, &out, &notes)
		}
	}
}
