package builtin_test

import (
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/trajectory"
)

// declaredBy returns what a node declared by itself, as it is in the trajectory of the run.
func declaredBy(t *testing.T, w *weir.Weir, run string) map[string]trajectory.Attributes {
	t.Helper()
	g, err := w.Trajectory(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]trajectory.Attributes{}
	for _, n := range g.Nodes {
		if n.ID.Type() == trajectory.File {
			out[n.Name] = n.Attributes
		}
	}
	return out
}

func TestFileResponseIsDeclaredAsAnArtifact(t *testing.T) {
	url, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, "{}")
		case "/text":
			w.Header().Set("Content-Disposition", `attachment; filename="notes.txt"`)
			_, _ = fmt.Fprint(w, "notes")
		case "/lost":
			w.Header().Set("Content-Disposition", `attachment; filename="lost.txt"`)
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write([]byte{0xFF, 0x00, 1, 2})
		}
	})
	w := open(t, o)
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: files
inputs: {url: {type: text}}
nodes:
  bytes: {type: httpRequest, with: {url: "{{ run.inputs.url }}/b?v=1", query: {key: "{{ secrets.KEY }}", n: 2}}}
  json: {type: httpRequest, with: {url: "{{ run.inputs.url }}/json"}}
  text: {type: httpRequest, with: {url: "{{ run.inputs.url }}/text"}}
  lost: {type: httpRequest, with: {url: "{{ run.inputs.url }}/lost", expect: any}}
  head: {type: httpRequest, with: {url: "{{ run.inputs.url }}/text", method: HEAD}}
`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Start(t.Context(), f, weir.Start{ID: "r", Inputs: map[string]any{"url": url}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := r.Wait(t.Context()); err != nil || res.Status != engine.Completed {
		t.Fatal(res.Status, res.Error, err)
	}
	want := map[string]trajectory.Attributes{
		url + "/b?v=1&n=2": {"url": url + "/b?v=1&n=2", "mimeType": "application/octet-stream", "size": int64(4)},
		"notes.txt":        {"url": url + "/text", "mimeType": "text/plain", "size": int64(5)},
	}
	if got := declaredBy(t, w, "r"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
