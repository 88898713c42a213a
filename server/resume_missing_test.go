package server_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/store/sqlite"
)

// unansweredModel is a provider whose answers do not come. It closes asked when it is called.
type unansweredModel struct{ asked chan struct{} }

func (m unansweredModel) Generate(ctx context.Context, _ *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	close(m.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestResumingReportsWhatTheServerLacks resumes runs of another program, which had a node type and a model provider that the
// server lacks.
func TestResumingReportsWhatTheServerLacks(t *testing.T) {
	t.Parallel()
	type in struct{ Text string }
	type out struct{ Text string }
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "weir.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	providers, models := map[string]weir.Provider{}, map[string]unansweredModel{}
	for _, name := range []string{"gone", "lost"} {
		models[name] = unansweredModel{make(chan struct{})}
		providers[name] = models[name]
	}
	w, err := weir.Open(weir.Options{
		Store: s, Providers: providers,
		Types: []weir.Type{weir.Func("loud", func(_ weir.Ctx, i in) (out, error) { return out(i), nil })},
	})
	if err != nil {
		t.Fatal(err)
	}
	const say = "  say: {type: llmRequest, in: {message: hello}}\n"
	for id, text := range map[string]string{
		"gone": "weir: 1\nname: gone\ncontext: {model: gone/m}\nnodes:\n" + say,
		"lost": "weir: 1\nname: lost\ncontext: {model: lost/m}\nnodes:\n  a: {type: loud, in: {text: hey}}\n" + say,
	} {
		f, err := w.Parse(id, []byte(text))
		if err == nil {
			_, err = w.Start(t.Context(), f, weir.Start{ID: id, User: "ada"})
		}
		if err != nil {
			t.Fatal(err)
		}
		<-models[id].asked
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	p := openProcess(t, dir, server.Options{})
	for id, missing := range map[string]string{"gone": "gone", "lost": `node type \"loud\"`} {
		a := p.send(http.MethodPost, "/v1/runs/"+id+"/resume?wait=60", "{}", nil)
		if a.status != http.StatusConflict || a.problem() != "closure_changed" || !strings.Contains(a.body, missing) || !strings.Contains(a.body, "provide what is missing") {
			t.Errorf("resuming %s: %d %s", id, a.status, a.body)
		}
		if a := p.send(http.MethodGet, "/v1/runs/"+id+"/timeline", "", nil); a.status != http.StatusOK {
			t.Errorf("showing %s: %d %s", id, a.status, a.body)
		}
		if a := p.send(http.MethodPost, "/v1/runs/"+id+"/cancel?wait=60", "{}", nil); a.status != http.StatusOK || !strings.Contains(a.body, `"cancelled"`) {
			t.Errorf("cancelling %s: %d %s", id, a.status, a.body)
		}
	}
}
