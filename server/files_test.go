package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/filestore"
	"github.com/weir-run/weir/store"
)

// png is the beginning of an image; nothing reads more of it.
const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// filesFlow passes a file and the messages of its context on.
const filesFlow = `weir: 1
name: files
inputs: {message: {type: message}, doc: {type: file}, messages: {type: messages}}
outputs: {doc: "{{ run.inputs.doc }}", message: "{{ run.inputs.message }}", messages: "{{ run.inputs.messages }}"}
nodes: {say: {type: manualInput, with: {text: done}}}
`

// form returns the body of an upload and its type.
func form(t *testing.T, name, content string, fields ...string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		k, v, _ := strings.Cut(f, "=")
		if err := w.WriteField(k, v); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// TestTheTypeOfAFileIsThatOfItsContent uploads contents under names and types that say something else.
func TestTheTypeOfAFileIsThatOfItsContent(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, MaxFile: 600_000})
	ada := p.anyone("ada")
	cut := strings.Repeat("a", 256<<10-1) // the next character is in two pieces
	for i, x := range []struct{ name, content, kind, problem string }{
		{"a.html", png, "image/png", ""},
		{"a", "\xff\xd8\xff\xe0", "image/jpeg", ""},
		{"a.txt", "GIF89a", "image/gif", ""},
		{"a", "RIFF\x00\x00\x00\x00WEBPVP", "image/webp", ""},
		{"a.png", "%PDF-1.7", "application/pdf", ""},
		{"a.png", "<html><script>alert(1)</script>", "text/plain", ""},
		{"a.svg", "<svg onload=alert(1)>", "text/plain", ""},
		{"a.csv", "a,b\n", "text/csv", ""},
		{"a.MD", "# a", "text/markdown", ""},
		{"a.json", "{}", "text/plain", ""},
		{"a.txt", cut + "é", "text/plain", ""},
		{"a.txt", cut + "\xf0\x9f\x92\xa9" + cut, "text/plain", ""},
		{"a.txt", cut + "\xc3", "", "415"},
		{"a.txt", cut + "\xc3(", "", "415"},
		{"a.txt", cut + "a\x00", "", "415"},
		{"a.txt", "a\x00b", "", "415"},
		{"a.zip", "PK\x03\x04\xff\xfe", "", "415"},
		{"a.exe", "MZ\x90\x00\x03", "", "415"},
		{"a.txt", "\xff\xfea\x00", "", "415"},
		{"a.png", "", "", "422"},
		{"a.txt", strings.Repeat("a", 600_001), "", "413"},
	} {
		f, err := ada.Upload(t.Context(), x.name, strings.NewReader(x.content))
		if e, ok := errors.AsType[*client.Error](err); x.problem != "" {
			if !ok || fmt.Sprint(e.Status) != x.problem {
				t.Errorf("%d: %+v, %v, want %s", i, f, err, x.problem)
			}
			continue
		}
		if err != nil || f.Type != x.kind || f.Bytes != int64(len(x.content)) || f.Name != x.name {
			t.Errorf("%d: %+v, %v, want %s", i, f, err, x.kind)
			continue
		}
		checkContent(t, p, ada, f, x.content)
	}
	checkNothingElseIsLeft(t, p, ada, 12)
}

// checkContent downloads a file, whole and in part.
func checkContent(t *testing.T, p *process, c *client.Client, f *client.File, content string) {
	t.Helper()
	got := p.send(http.MethodGet, "/v1/files/"+f.ID+"/content", "", withToken(c.Token))
	if got.body != content || got.header.Get("Content-Type") != f.Type || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") ||
		got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: %d bytes, %v", f.Name, len(got.body), got.header)
	}
	if part, err := c.Download(t.Context(), f.ID, 1, 3); len(content) > 3 && (err != nil || string(part) != content[1:4]) {
		t.Errorf("%s: bytes 1 to 3 are %q, %v", f.Name, part, err)
	}
}

// checkNothingElseIsLeft checks that a user has some files, and that there is nothing of others.
func checkNothingElseIsLeft(t *testing.T, p *process, c *client.Client, want int) {
	t.Helper()
	files, err := c.Files(t.Context())
	if err != nil || len(files) != want {
		t.Errorf("%d files, %v", len(files), err)
	}
	ids := map[string]bool{}
	for _, f := range files {
		ids[f.ID] = true
	}
	for _, kind := range []string{filestore.Kind, filestore.PieceKind} {
		list, err := p.app.Store.Documents(t.Context(), store.DocumentFilter{Kind: kind, Limit: 100})
		if err != nil || len(list) == 0 {
			t.Errorf("%d documents, %v", len(list), err)
		}
		for i := range list {
			if id, _, _ := strings.Cut(list[i].ID, "/"); !ids[id] {
				t.Errorf("%s %s is left", kind, list[i].ID)
			}
		}
	}
}

// TestUploadsThatAreNotWellFormedAreRefused tries forged forms.
func TestUploadsThatAreNotWellFormedAreRefused(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, MaxFile: 1000})
	ada := p.anyone("ada")
	good, kind := form(t, "a.txt", "abc")
	two := strings.Replace(good, "--\r\n", "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b\"\r\n\r\nx\r\n"+good[:strings.Index(good, "\r\n")]+"--\r\n", 1)
	field := func(fields ...string) string {
		body, k := form(t, "a.txt", "abc", fields...)
		return strings.ReplaceAll(body, strings.TrimPrefix(k, "multipart/form-data; boundary="), strings.TrimPrefix(kind, "multipart/form-data; boundary="))
	}
	for name, x := range map[string]struct {
		body, kind string
		status     int
	}{
		"JSON": {`{"file":"x"}`, "application/json", 415}, "text": {"abc", "text/plain", 415}, "a form without files": {"file=x", "application/x-www-form-urlencoded", 415},
		"no boundary": {good, "multipart/form-data", 422}, "another boundary": {good, "multipart/form-data; boundary=x", 422}, "cut": {good[:len(good)-20], kind, 422},
		"no body": {"", kind, 422}, "two files": {two, kind, 422}, "a purpose without effect": {field("purpose=fine-tune"), kind, 422},
		"an unknown field": {field("color=red"), kind, 422}, "a time that is too long": {field("expires_after[seconds]=99999999"), kind, 422},
		"a large form": {field("purpose=" + strings.Repeat("x", 70_000)), kind, 413}, "a large field": {field("purpose=" + strings.Repeat("x", 3_000)), kind, 422},
	} {
		got := p.send(http.MethodPost, "/v1/files", x.body, func(r *http.Request) {
			withToken(ada.Token)(r)
			r.Header.Set("Content-Type", x.kind)
		})
		if got.status != x.status || got.problem() == "" {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, x.status)
		}
	}
	for given, want := range map[string]string{"../../etc/passwd": "passwd", `C:\x\a.txt`: "a.txt", "a\u202etxt.b": "atxt.b", strings.Repeat("é", 200): strings.Repeat("é", 127), "..": "file"} {
		f, err := ada.Upload(t.Context(), given, strings.NewReader("abc"))
		if err != nil || f.Name != want {
			t.Errorf("the name %q became %+v, %v", given, f, err)
		}
	}
	list, err := ada.Files(t.Context())
	if err != nil || len(list) != 5 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestAFileIsAnInputOfRuns(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	putText(t, ada, "files", filesFlow, "", true)
	putText(t, bob, "theirs", strings.Replace(filesFlow, "name: files", "name: theirs", 1), "", true)
	text, image := upload(t, ada, "a.txt", "Berth 4"), upload(t, ada, "a.png", png)
	run := useFiles(t, ada, text, image)
	if doc := fmt.Sprint(run.Outputs["doc"]); !strings.Contains(doc, "text:Berth 4") || !strings.Contains(doc, "mime:text/plain") || !strings.Contains(doc, "name:a.txt") {
		t.Error(doc)
	}
	if all := jsonText(t, run.Outputs); !strings.Contains(all, `"kind":"image","mime":"image/png","name":"a.png"`) || !strings.Contains(all, `"kind":"file","mime":"text/plain"`) {
		t.Error(all)
	}
	for name, x := range map[string]struct {
		user   *client.Client
		inputs map[string]any
	}{
		"unknown":                 {ada, map[string]any{"doc": map[string]any{"file_id": "file-none"}}},
		"unknown in a message":    {ada, map[string]any{"message": seeing("file", "x")}},
		"no image":                {ada, map[string]any{"message": seeing("image", text)}},
		"of another user":         {bob, map[string]any{"doc": map[string]any{"file_id": text}}},
		"of another in a message": {bob, map[string]any{"message": seeing("file", text)}},
	} {
		flow := map[*client.Client]string{ada: "files", bob: "theirs"}[x.user]
		_, err := x.user.StartRun(t.Context(), client.Start{Flow: flow, Inputs: x.inputs})
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != "not_found" && name != "no image" || e.Status >= 500 {
			t.Errorf("a file %s: %v", name, err)
		}
	}
}

// upload uploads a file and returns its id.
func upload(t *testing.T, c *client.Client, name, content string) string {
	t.Helper()
	f, err := c.Upload(t.Context(), name, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return f.ID
}

// seeing is a message with a file.
func seeing(kind, id string) map[string]any {
	return map[string]any{"role": "user", "text": "See", "parts": []any{map[string]any{"kind": kind, "file_id": id}}}
}

// useFiles starts a run with a text as an input and in a message, and with an image in a message.
func useFiles(t *testing.T, c *client.Client, text, image string) *client.Run {
	t.Helper()
	run, err := c.StartRun(t.Context(), client.Start{Flow: "files", Wait: 60, Inputs: map[string]any{
		"doc": map[string]any{"file_id": text}, "message": seeing("image", image), "messages": []any{seeing("file", text)},
	}})
	if err != nil || run.Status != "completed" {
		t.Fatalf("%+v, %v", run, err)
	}
	return run
}

func TestAFileIsDeletedWithWhatUsesIt(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, Sweep: 50 * time.Millisecond})
	ada := p.anyone("ada")
	putText(t, ada, "files", filesFlow, "", true)
	text, image, unused, valid := upload(t, ada, "a.txt", "Berth 4"), upload(t, ada, "a.png", png), upload(t, ada, "b.txt", "x"), upload(t, ada, "c.txt", "y")
	run := useFiles(t, ada, text, image)
	for flow, want := range map[string]int{"files": http.StatusOK, "talk": http.StatusUnprocessableEntity} {
		session, err := ada.OpenSession(t.Context(), flow, "")
		body := jsonText(t, map[string]any{"message": seeing("image", image)})
		if got := p.send(http.MethodPost, "/v1/sessions/"+session+"/messages?wait=60", body, withToken(ada.Token)); err != nil || got.status != want {
			t.Errorf("%s: %d %s, %v", flow, got.status, got.body, err)
		}
	}
	expire(t, p, text, image, unused)
	waitFor(t, "the file that nothing uses is deleted", func() bool { return !hasFile(p, unused) })
	if !hasFile(p, text) || !hasFile(p, image) || !hasFile(p, valid) {
		t.Error("a file that is in use, or has not expired, is deleted")
	}
	deleteConfirmed(t, p, ada, "/v1/runs/"+run.ID)
	expire(t, p, text, image)
	waitFor(t, "the file of a deleted run is deleted", func() bool { return !hasFile(p, text) })
	if !hasFile(p, image) {
		t.Error("a file that a session uses is deleted")
	}
	if err := ada.DeleteFile(t.Context(), image); err != nil || hasFile(p, image) {
		t.Errorf("deleted: %v", err)
	}
	checkNothingElseIsLeft(t, p, ada, 1)
	deleteConfirmed(t, p, p.client("owner", server.Admin), "/v1/users/ada")
	for _, kind := range []string{filestore.Kind, filestore.PieceKind, filestore.UseKind} {
		if list, err := p.app.Store.Documents(t.Context(), store.DocumentFilter{Kind: kind}); err != nil || len(list) != 0 {
			t.Errorf("after the erasure of the user: %s: %+v, %v", kind, list, err)
		}
	}
}

// expire makes files expired.
func expire(t *testing.T, p *process, ids ...string) {
	t.Helper()
	for _, id := range ids {
		d, err := p.app.Store.Document(t.Context(), filestore.Kind, id)
		for try := 0; err == nil && try < 100; try++ {
			d.Due = time.Now().Add(-time.Hour)
			if _, err = p.app.Store.PutDocument(t.Context(), d); errors.Is(err, store.ErrChanged) { // the sweeper looked at it
				d, err = p.app.Store.Document(t.Context(), filestore.Kind, id)
				continue
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func hasFile(p *process, id string) bool {
	_, err := p.app.Store.Document(context.Background(), filestore.Kind, id)
	return err == nil
}

// waitFor waits until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick, end := time.NewTicker(20*time.Millisecond), time.NewTimer(2*time.Minute)
	defer tick.Stop()
	defer end.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// deleteConfirmed deletes what a path names, in two steps.
func deleteConfirmed(t *testing.T, p *process, c *client.Client, path string) {
	t.Helper()
	err := c.Do(t.Context(), http.MethodDelete, path, nil, nil)
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Confirmation == "" {
		t.Fatalf("%s: %v", path, err)
	}
	decode[any](p, c, http.MethodDelete, path+"?confirm="+e.Confirmation, "")
}
