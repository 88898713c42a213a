package mcptool_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

// resources returns a result with more of them than are declared.
func resources() *mcp.CallToolResult {
	size := int64(7)
	r := &mcp.CallToolResult{Content: []mcp.Content{
		&mcp.ResourceLink{
			URI: "https://files.example.com/q3.pdf?key=key-to-the-test", Name: "q3.pdf", Title: "Third quarter\x1b[0m", Description: "All sales.",
			MIMEType: "application/pdf", Size: &size,
		},
		&mcp.ResourceLink{URI: "data:text/plain," + strings.Repeat("a", 5000), Name: "long"},
		&mcp.ResourceLink{URI: "data:text/plain," + strings.Repeat("a", 5001), Name: "long"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///long", Text: strings.Repeat("b", 5000)}},
		&mcp.ImageContent{MIMEType: "image/png", Data: []byte("png")},
		&mcp.ImageContent{MIMEType: "image/png", Data: []byte("another")},
	}}
	for i := range 300 {
		r.Content = append(r.Content, &mcp.ResourceLink{URI: fmt.Sprint("file:///", i), Name: "same"})
	}
	return r
}

// declaredBy calls a tool and returns what it declares.
func declaredBy(t *testing.T, set *tool.Set, name string) (list []trajectory.Artifact, err error) {
	t.Helper()
	_, err = set.Get("mcp:test/"+name).Run(t.Context(), tool.Call{Key: "k", OnDeclare: func(a trajectory.Artifact) { list = append(list, a) }})
	return list, err
}

func TestResourcesOfAResultAreDeclared(t *testing.T) {
	t.Parallel()
	for kind, serve := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			set := accepted(t, client(t, serve(t), lock(t)))
			got, err := declaredBy(t, set, "many")
			if err != nil {
				t.Fatal(err)
			}
			want := []trajectory.Artifact{
				{Type: trajectory.File, Attributes: map[string]any{"mimeType": "image/png", "size": int64(3)}},
				{Type: trajectory.File, Attributes: map[string]any{"mimeType": "audio/wav", "size": int64(4)}},
				{Type: trajectory.File, Name: "file:///a", Attributes: map[string]any{"title": "a", "mimeType": "text/plain"}},
				{Type: trajectory.Knowledge, Name: "file:///b", Attributes: map[string]any{"mimeType": "text/plain", "size": int64(6), "text": "inside"}},
				{Type: trajectory.File, Name: "file:///c", Attributes: map[string]any{"mimeType": "a/b", "size": int64(2)}},
			}
			for i := range want[:min(2, len(got))] {
				want[i].Attributes["sha256"] = got[i].Attributes["sha256"]
				digest, _ := got[i].Attributes["sha256"].(string)
				if want[i].Name = got[i].Name; len(digest) != 64 || !strings.HasSuffix(got[i].Name, " "+digest[:12]) {
					t.Errorf("a blob is called %q and its digest is %q", got[i].Name, digest)
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v", got)
			}
			if got, err := declaredBy(t, set, "echo"); len(got) > 0 {
				t.Errorf("a text declares %v, %v", got, err)
			}
		})
	}
}

func TestResourceDescriptionsAreCleanedAndBounded(t *testing.T) {
	t.Parallel()
	set := accepted(t, client(t, overHTTP(t), lock(t)))
	got, err := declaredBy(t, set, "list")
	if err != nil || len(got) != 200 {
		t.Fatalf("%d are declared, %v", len(got), err)
	}
	q3 := got[0]
	if q3.Name != "https://files.example.com/q3.pdf?key=[secret KEY]" || q3.Description != "All sales." || !reflect.DeepEqual(q3.Attributes, map[string]any{
		"title": "Third quarter␛[0m", "mimeType": "application/pdf", "size": int64(7),
	}) {
		t.Errorf("got %+v", q3)
	}
	if len(got[1].Name) > 1000 || got[1].Name == got[2].Name || got[4].Name == got[5].Name {
		t.Errorf("the names are %q, %q, %q and %q", got[1].Name, got[2].Name, got[4].Name, got[5].Name)
	}
	if text, _ := got[3].Attributes["text"].(string); len(text) > 2100 || !strings.Contains(text, "are left out here") {
		t.Errorf("a long text is kept as %d bytes", len(text))
	}
	if got, err := declaredBy(t, set, "lost"); err == nil || len(got) > 0 {
		t.Errorf("a failed call has declared %d, %v", len(got), err)
	}
}
