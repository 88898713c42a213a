package config_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/llm"
)

// The schema and the types are two forms of one thing: each key of the one is
// a field of the other.
func TestSchemaMatchesTypes(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	part := func(path ...string) map[string]any {
		v := root
		for _, step := range path {
			v, _ = v[step].(map[string]any)
		}
		return v
	}
	for _, tt := range []struct {
		what any
		path []string
	}{
		{config.Config{}, nil},
		{config.HTTP{}, []string{"properties", "http"}},
		{config.TemporalCluster{}, []string{"properties", "temporal"}},
		{config.TemporalTLS{}, []string{"properties", "temporal", "properties", "tls"}},
		{config.Storage{}, []string{"properties", "storage"}},
		{config.Encryption{}, []string{"properties", "storage", "properties", "encryption"}},
		{config.Server{}, []string{"properties", "server"}},
		{config.Backup{}, []string{"properties", "server", "properties", "backup"}},
		{config.Folder{}, []string{"properties", "server", "properties", "folders", "additionalProperties"}},
		{config.Audit{}, []string{"properties", "server", "properties", "audit"}},
		{config.OTel{}, []string{"properties", "otel"}},
		{config.Tools{}, []string{"properties", "tools"}},
		{config.Provider{}, []string{"$defs", "provider"}},
		{config.Key{}, []string{"$defs", "key"}},
		{config.Key{}, []string{"$defs", "text"}},
		{llm.Model{}, []string{"$defs", "model"}},
		{llm.Price{}, []string{"$defs", "price"}},
		{llm.Limit{}, []string{"$defs", "limit"}},
		{config.HTTPTool{}, []string{"$defs", "httpTool"}},
		{config.Executors{}, []string{"properties", "executors"}},
		{config.E2B{}, []string{"$defs", "e2b"}},
		{config.MCPServer{}, []string{"$defs", "mcpServer"}},
	} {
		var fields []string
		typ := reflect.TypeOf(tt.what)
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && name != "-" {
				fields = append(fields, name)
			}
		}
		slices.Sort(fields)
		s := part(tt.path...)
		properties, _ := s["properties"].(map[string]any)
		if keys := slices.Sorted(maps.Keys(properties)); !slices.Equal(keys, fields) {
			t.Errorf("%s has the fields\n  %v\nand the schema\n  %v", typ, fields, keys)
		}
		if s["additionalProperties"] != false {
			t.Errorf("the schema of %s lets other keys pass", typ)
		}
	}
}

// Pages are next to the code that they describe.
const docsPath = "../../docs"

func TestDocExamplesAreValid(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docsPath, "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("only %d examples were found", len(blocks))
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		p := newFixture(t)
		p.project(text)
		if _, err := config.Load(p.o); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

func TestDocsNameEveryKeyAndVariable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docsPath, "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	var root any
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	names := []string{
		"WEIR_CONFIG", "WEIR_PARALLEL", "WEIR_SECRET_", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY",
		"ANTHROPIC_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL",
	}
	for _, name := range append(names, properties(root)...) {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/configuration.md does not name %s", name)
		}
	}
}

// properties returns all keys that a schema names.
func properties(v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		if p, ok := v["properties"].(map[string]any); ok {
			out = slices.Collect(maps.Keys(p))
		}
		for _, sub := range v {
			out = append(out, properties(sub)...)
		}
	case []any:
		for _, sub := range v {
			out = append(out, properties(sub)...)
		}
	}
	return out
}
