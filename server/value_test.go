package server_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// bigFlow passes its inputs on: to an output, the state and its context.
const bigFlow = `weir: 1
name: big
inputs: {message: {type: message}, text: {type: text, default: ""}, doc: {type: file}}
nodes:
  say: {type: manualInput, with: {text: "{{ run.inputs.text }}"}}
  keep: {type: transform, after: say, with: {state: {note: run.inputs.text}}}
  add: {type: injectMessages, after: keep, in: {messages: "{{ run.inputs.message }}"}}
outputs: {line: "{{ say.text }}", doc: "{{ run.inputs.doc }}"}
`

// at returns the value at a JSON Pointer.
func at(t *testing.T, v any, pointer string) any {
	t.Helper()
	for _, name := range strings.Split(pointer, "/")[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(x) {
				t.Fatalf("%s: no element %s", pointer, name)
			}
			v = x[i]
		default:
			t.Fatalf("%s: nothing has a member %s", pointer, name)
		}
	}
	return v
}

// checkTruncated follows each entry of the member truncated of an answer: the answer has at most the beginning, and the
// URL has the whole value, in one piece and in ranges. It returns what was left out, by place.
func checkTruncated(t *testing.T, p *process, c *client.Client, text string) map[string]string {
	t.Helper()
	var list struct{ Truncated []client.Truncated }
	var all any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	whole := map[string]string{}
	for _, x := range list.Truncated {
		if v := at(t, all, x.Place); v != nil && v != x.Excerpt || len(x.Excerpt) > 3000 {
			t.Errorf("%s is %.80v, and its excerpt %.80q", x.Place, v, x.Excerpt)
		}
		data, err := c.Value(t.Context(), x, 0, 0)
		if err != nil {
			t.Errorf("%+v: %v", x, err)
			continue
		}
		var pieces []byte
		for len(pieces) < len(data) {
			piece, err := c.Value(t.Context(), x, int64(len(pieces)), 50_000)
			if err != nil || len(piece) == 0 || len(piece) > 50_000 {
				t.Fatalf("%s from %d: %d bytes, %v", x.URL, len(pieces), len(piece), err)
			}
			pieces = append(pieces, piece...)
		}
		if string(pieces) != string(data) || len(data) < x.Size {
			t.Errorf("%s: %d bytes in ranges, %d in one piece, said to have %d", x.Place, len(pieces), len(data), x.Size)
		}
		if got := p.send(http.MethodGet, strings.TrimPrefix(x.URL, "/weir"), "", func(r *http.Request) {
			withToken(c.Token)(r)
			r.Header.Set("Range", "bytes=999999999-")
		}); got.status != http.StatusRequestedRangeNotSatisfiable {
			t.Errorf("a range behind the end: %d", got.status)
		}
		whole[x.Place] = string(data)
	}
	return whole
}

func TestLargeValuesAreLeftOutAndReadWholeOrByRange(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, BasePath: "/weir"})
	ada := p.anyone("ada")
	putText(t, ada, "big", bigFlow, "", true)
	image := make([]byte, 150_000)
	if _, err := rand.Read(image); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("é<", 60_000)
	message := map[string]any{
		"role": "user", "text": long,
	}
	inputs := map[string]any{"message": message, "text": long, "doc": map[string]any{"name": "a/é.html", "mime": "text/html", "base64": base64.StdEncoding.EncodeToString(image)}}
	session := seedSession(t, p, ada, long, image)
	get := func(method, path, body string) answer { return p.send(method, path, body, withToken(ada.Token)) }
	started := get(http.MethodPost, "/v1/runs?wait=60", jsonText(t, map[string]any{"flow": "big", "inputs": inputs}))
	var id struct{ Run, Status string }
	if err := json.Unmarshal([]byte(started.body), &id); err != nil || id.Status != "completed" {
		t.Fatalf("%.500s, %v", started.body, err)
	}
	delete(inputs, "message")
	other := decode[struct{ Session string }](p, ada, http.MethodPost, "/v1/sessions", `{"flow":"big"}`).Session
	sent := get(http.MethodPost, "/v1/sessions/"+other+"/messages?wait=60", jsonText(t, map[string]any{"message": message, "inputs": inputs}))
	round := decode[struct{ Run string }](p, ada, http.MethodPost, "/v1/sessions/"+session+"/messages?wait=60", `{"message":"Until when?"}`)
	for name, x := range map[string]struct {
		body   string
		places []string
	}{
		"start":    {started.body, []string{"/outputs/line", "/outputs/doc"}},
		"run":      {get(http.MethodGet, "/v1/runs/"+id.Run, "").body, []string{"/inputs/text", "/inputs/doc", "/inputs/message", "/outputs/line", "/outputs/doc", "/state/note", "/nodes/0/outputs/text"}},
		"context":  {get(http.MethodGet, "/v1/runs/"+id.Run+"/contexts/main", "").body, []string{"/list/0/text"}},
		"send":     {sent.body, []string{"/report/outputs/line", "/report/outputs/doc"}},
		"messages": {get(http.MethodGet, "/v1/sessions/"+session+"/messages", "").body, seeded("/messages/0/message")},
		"round":    {get(http.MethodGet, "/v1/runs/"+round.Run+"/contexts/main", "").body, seeded("/list/0")},
	} {
		if len(x.body) > 40_000 {
			t.Errorf("%s has %d bytes", name, len(x.body))
		}
		whole := checkTruncated(t, p, ada, x.body)
		for _, place := range x.places {
			switch {
			case strings.HasSuffix(place, "/data") && whole[place] != string(image):
				t.Errorf("%s: %s has %d bytes, want those of the image", name, place, len(whole[place]))
			case whole[place] == "":
				t.Errorf("%s: %s was not left out: %.300s", name, place, x.body)
			}
		}
	}
	all := get(http.MethodGet, "/v1/runs/"+id.Run+"?maxValue=67108864", "")
	var details struct {
		Outputs   struct{ Line string }
		Truncated []client.Truncated
	}
	if err := json.Unmarshal([]byte(all.body), &details); err != nil || details.Outputs.Line != long || len(details.Truncated) != 0 {
		t.Errorf("with a bound of 64 MiB: %d characters, %d left out, %v", len(details.Outputs.Line), len(details.Truncated), err)
	}
	checkDownloads(t, p, ada, "/v1/runs/"+id.Run, []download{
		{"/value?part=outputs&name=doc&as=content", "text/html", "attachment; filename*=utf-8''a%2F%C3%A9.html", string(image), 200},
		{"/value?part=outputs&name=line&as=content", "text/plain; charset=utf-8", "", long, 200},
		{"/value?part=outputs&name=text&node=say&as=content", "text/plain; charset=utf-8", "", long, 200},
		{"/value?part=inputs&name=message&as=content", "", "", "query.as", 422},
		{"/value?part=effects&name=x", "", "", "query.node", 422},
		{"/value?part=outputs&name=none", "", "", "not_found", 404},
		{"/contexts/main/messages/9", "", "", "not_found", 404},
		{"/contexts/none/messages/0", "", "", "not_found", 404},
	})
	seed := []download{
		{"/messages/0?part=0", "image/png", `attachment; filename="a \"b\".png"`, string(image), 200},
		{"/messages/0?part=1", "", "", "not_found", 404},
		{"/messages/99", "", "", "not_found", 404},
	}
	checkDownloads(t, p, ada, "/v1/sessions/"+session, seed)
	checkDownloads(t, p, ada, "/v1/runs/"+round.Run+"/contexts/main", seed)
}

// jsonText returns a value as JSON.
func jsonText(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// seedSession makes a session that begins with a long message with an image.
func seedSession(t *testing.T, p *process, c *client.Client, text string, image []byte) string {
	t.Helper()
	part := map[string]any{"type": "file", "file": map[string]any{
		"filename": `a "b".png`, "file_data": "data:image/png;base64," + base64.StdEncoding.EncodeToString(image),
	}}
	body, err := json.Marshal(map[string]any{"model": "talk", "messages": []any{
		map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": text}, part}},
		map[string]any{"role": "assistant", "content": "Yes."},
		map[string]any{"role": "user", "content": "Is there a berth?"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := p.send(http.MethodPost, "/v1/chat/completions", string(body), withToken(c.Token))
	if got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	return got.header.Get("X-Weir-Session")
}

// seeded are the places of what a long message leaves out.
func seeded(at string) []string { return []string{at + "/text", at + "/parts/0/data"} }

// download is content that a server sends below a path.
type download struct {
	path, media, disposition, body string
	status                         int
}

// checkDownloads downloads texts and files, in full and in part.
func checkDownloads(t *testing.T, p *process, c *client.Client, path string, list []download) {
	t.Helper()
	for _, x := range list {
		got := p.send(http.MethodGet, path+x.path, "", withToken(c.Token))
		if got.status != x.status {
			t.Errorf("%s: %d %.300s", x.path, got.status, got.body)
			continue
		}
		if x.status != http.StatusOK {
			if !strings.Contains(got.body, x.body) {
				t.Errorf("%s: %s", x.path, got.body)
			}
			continue
		}
		if got.body != x.body || got.header.Get("Content-Type") != x.media || got.header.Get("Content-Disposition") != x.disposition ||
			got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d bytes, %v", x.path, len(got.body), got.header)
		}
		part := p.send(http.MethodGet, path+x.path, "", func(r *http.Request) {
			withToken(c.Token)(r)
			r.Header.Set("Range", "bytes=-10")
			r.Header.Set("If-Range", got.header.Get("ETag"))
		})
		size := fmt.Sprintf("bytes %d-%d/%d", len(x.body)-10, len(x.body)-1, len(x.body))
		if part.status != http.StatusPartialContent || part.body != x.body[len(x.body)-10:] || part.header.Get("Content-Range") != size {
			t.Errorf("the last 10 bytes of %s: %d %v", x.path, part.status, part.header)
		}
	}
}
