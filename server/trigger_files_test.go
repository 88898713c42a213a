package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// TestAFileIsAnInputOfItsRun has files of several types in a folder with a trigger for each type of an input, and restarts the server.
func TestAFileIsAnInputOfItsRun(t *testing.T) {
	t.Parallel()
	dir, inbox := t.TempDir(), t.TempDir()
	for _, kind := range []string{"text", "file", "message", "object", "number"} {
		text := fmt.Sprintf("weir: 1\nname: take-%s\ninputs: {doc: {type: %s, required: true}}\nnodes:\n  show: {type: manualInput, with: {text: \"x\"}}\noutputs: {doc: \"{{ run.inputs.doc }}\"}\n", kind, kind)
		if err := os.WriteFile(filepath.Join(dir, "take-"+kind+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"a.txt": `{"n": 7}`, "b.png": "\x89PNG\r\n\x1a\n0000", "c.zip": "PK\x03\x04\x00\xff"} {
		if err := os.WriteFile(filepath.Join(inbox, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := server.Options{RequireToken: true, Folders: map[string]server.Folder{"inbox": {Path: inbox, Users: []string{"ada"}}, "other": {Path: inbox}}}
	p := openProcess(t, dir, o)
	ada, eve := p.anyone("ada"), p.anyone("eve")
	for what, body := range map[string]string{
		"of another user":   `{"name":"x","flow":"take-text","kind":"file","folder":"inbox","payload":"doc"}`,
		"without a folder":  `{"name":"x","flow":"take-text","kind":"file","payload":"doc"}`,
		"unknown":           `{"name":"x","flow":"take-text","kind":"file","folder":"/etc","payload":"doc"}`,
		"of the owner":      `{"name":"x","flow":"take-text","kind":"file","folder":"other","payload":"doc"}`,
		"of another folder": `{"name":"x","flow":"take-text","kind":"file","folder":"../inbox","payload":"doc"}`,
	} {
		if a := p.send(http.MethodPost, "/v1/triggers", body, withToken(eve.Token)); a.status != http.StatusUnprocessableEntity {
			t.Errorf("a folder %s: %d %s", what, a.status, a.body)
		}
	}
	triggers := map[string]madeTrigger{}
	for _, kind := range []string{"text", "file", "message", "object", "number"} {
		triggers[kind] = makeTrigger(t, ada, fmt.Sprintf(`{"name":"by %s","flow":"take-%s","kind":"file","folder":"inbox","payload":"doc"}`, kind, kind))
	}
	want := map[string]string{
		"text":    "a.txt started; b.png refused; c.zip refused",
		"file":    "a.txt started; b.png started; c.zip refused",
		"message": "a.txt started; b.png started; c.zip refused",
		"object":  "a.txt started; b.png refused; c.zip refused",
		"number":  "a.txt refused; b.png refused; c.zip refused",
	}
	for kind, x := range triggers {
		if got := awaitFiles(t, ada, x.ID, 3); got != want[kind] {
			t.Errorf("%s: %s, not %s", kind, got, want[kind])
		}
	}
	if a := p.send(http.MethodGet, "/v1/triggers/"+triggers["text"].ID+"/files", "", withToken(eve.Token)); a.status != http.StatusNotFound {
		t.Errorf("files of another user: %d %s", a.status, a.body)
	}
	p.close()
	p = openProcess(t, dir, o)
	ada.URL = p.url
	if err := os.WriteFile(filepath.Join(inbox, "d.txt"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := awaitFiles(t, ada, triggers["text"].ID, 4); got != "a.txt started; b.png refused; c.zip refused; d.txt started" {
		t.Errorf("after a restart: %s", got)
	}
	list := p.send(http.MethodGet, "/v1/runs?limit=100", "", withToken(ada.Token)).body
	for origin, n := range map[string]int{"by text/a.txt": 1, "by text/d.txt": 1, "by file/a.txt": 1, "by file/b.png": 1, "by message/b.png": 1, "by object/a.txt": 1, "by number": 0} {
		if got := strings.Count(list, `"origin":"file:`+origin); got != n {
			t.Errorf("%d runs by file:%s: %s", got, origin, list)
		}
	}
}

// awaitFiles waits until it is known of so many files in a folder what becomes of them.
func awaitFiles(t *testing.T, c *client.Client, trigger string, entries int) string {
	t.Helper()
	for {
		var list struct {
			Files []struct{ Name, State string }
		}
		if err := c.Do(t.Context(), http.MethodGet, "/v1/triggers/"+trigger+"/files", nil, &list); err != nil {
			t.Fatal(err)
		}
		var out []string
		done := len(list.Files) >= entries
		for _, f := range list.Files {
			done = done && f.State != "seen"
			out = append(out, f.Name+" "+f.State)
		}
		slices.Sort(out)
		if done {
			return strings.Join(out, "; ")
		}
		select {
		case <-time.After(50 * time.Millisecond): // between looks
		case <-t.Context().Done():
			t.Fatal(out)
		}
	}
}
