package main

import (
	"crypto/sha256"
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/licenses"
)

func built() *debug.BuildInfo {
	return &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/weir", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:x"},
			{Path: "example.com/b", Version: "v0.1.0", Replace: &debug.Module{Path: "example.com/c", Version: "v0.2.0"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "vcs.revision", Value: "abc"}, {Key: "-ldflags", Value: "-s"}},
	}
}

func TestDocumentListsBinaryAndModules(t *testing.T) {
	t.Parallel()
	known := []licenses.Module{{Path: "std", License: "BSD-3-Clause"}, {Path: "example.com/a", License: "MIT"}, {Path: "example.com/c", License: "ISC"}, {Path: "npm:@x/y", Version: "1.0.0", License: "MIT"}}
	out, err := document("weir", sha256.Sum256([]byte("code")), built(), known)
	if err != nil {
		t.Fatal(err)
	}
	var doc bom
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Format != "CycloneDX" || doc.Spec != "1.6" || doc.Serial != "urn:uuid:5694d08a-2e53-8fca-a0c3-103e5ad6f607" {
		t.Errorf("the document is %s %s %s", doc.Format, doc.Spec, doc.Serial)
	}
	binary := doc.Metadata.Component
	if binary.Version != "v1.2.3" || binary.Hashes[0].Content[:16] != "5694d08a2e53ffca" || len(binary.Properties) != 2 {
		t.Errorf("the binary is %+v", binary)
	}
	var listed []string
	for _, c := range doc.Components {
		listed = append(listed, c.PURL+" "+c.Licenses[0].Expression)
	}
	want := "pkg:golang/std@1.26.8 BSD-3-Clause, pkg:golang/example.com/a@v1.0.0 MIT, pkg:golang/example.com/c@v0.2.0 ISC, pkg:npm/%40x/y@1.0.0 MIT"
	if got := strings.Join(listed, ", "); got != want || len(doc.Dependencies[0].DependsOn) != 4 {
		t.Errorf("the modules are %s, want %s", got, want)
	}
	bare := built()
	bare.Settings = append(bare.Settings, debug.BuildSetting{Key: "-tags", Value: "netgo,no_ui"})
	if out, err := document("weir", [32]byte{}, bare, known); err != nil || strings.Contains(string(out), "pkg:npm/") {
		t.Errorf("a binary without the page lists its packages: %v", err)
	}
	again, err := document("weir", sha256.Sum256([]byte("code")), built(), known)
	if err != nil || string(again) != string(out) {
		t.Errorf("the same binary has another bill: %v", err)
	}
}

func TestModuleWithoutLicenceIsAnError(t *testing.T) {
	t.Parallel()
	known := []licenses.Module{{Path: "std", License: "BSD-3-Clause"}, {Path: "example.com/a", License: "MIT"}}
	if _, err := document("weir", [32]byte{}, built(), known); err == nil || !strings.Contains(err.Error(), "example.com/c") {
		t.Errorf("a module of no known licence gave %v", err)
	}
}
