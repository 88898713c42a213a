package licenses_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/licenses"
)

var update = flag.Bool("update", false, "write the generated files")

// platforms are the operating systems that releases are built for.
var platforms = []string{"linux", "darwin", "windows"}

// dataSources are modules of which the binary contains data in another form, and no code: the
// vocabularies of package token.
var dataSources = []string{"github.com/pkoukk/tiktoken-go-loader"}

// source is one module and the files of its root that state terms.
type source struct {
	licenses.Module
	files []file
}

type file struct{ name, text string }

// linked lists the modules that the binary links on any platform, with and without the client of PostgreSQL: the build
// tag only adds imports.
func linked(t *testing.T) []source {
	t.Helper()
	found := map[string]source{}
	for _, platform := range platforms {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", "postgres", "-deps", "-json=Module,Standard", "../../cmd/weir")
		cmd.Env = append(os.Environ(), "GOOS="+platform, "GOARCH=amd64", "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", platform, err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if m := p.Module; m != nil && !m.Main {
				found[m.Path] = source{licenses.Module{Path: m.Path, Version: m.Version}, licenceFiles(t, m.Dir)}
			}
		}
	}
	for _, path := range dataSources {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", path).Output()
		if err != nil {
			t.Fatalf("go list -m %s: %v", path, err)
		}
		version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		found[path] = source{licenses.Module{Path: path, Version: version}, licenceFiles(t, dir)}
	}
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	found["std"] = source{licenses.Module{Path: "std"}, licenceFiles(t, strings.TrimSpace(string(root)))}
	for _, s := range found {
		s.License = spdxExpression(s.files)
		found[s.Path] = s
	}
	out := append(slices.Collect(maps.Values(found)), bundled(t)...)
	slices.SortFunc(out, func(x, y source) int { return strings.Compare(x.Path, y.Path) })
	return out
}

// bundled lists the npm packages that the files of the web page contain, as its build found them.
func bundled(t *testing.T) []source {
	t.Helper()
	b, err := os.ReadFile("../../server/ui/dist/licenses.json")
	if err != nil {
		t.Fatal(err)
	}
	var packages []struct{ Name, Version, Identifier, Text string }
	if err := json.Unmarshal(b, &packages); err != nil {
		t.Fatal(err)
	}
	out := make([]source, 0, len(packages))
	for _, p := range packages {
		terms := file{"LICENSE", strings.TrimSpace(strings.ReplaceAll(p.Text, "\r\n", "\n"))}
		if terms.text == "" {
			terms = file{"package.json", "The package has no licence file. Its package.json names the licence: " + p.Identifier}
		}
		out = append(out, source{licenses.Module{Path: licenses.NPM + p.Name, Version: p.Version, License: p.Identifier}, []file{terms}})
	}
	return out
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)`)

// licenceFiles reads the licence, notice and patent files of a folder.
func licenceFiles(t *testing.T, dir string) []file {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []file
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || strings.Contains(e.Name(), "LOGO") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, file{e.Name(), strings.TrimSpace(strings.ReplaceAll(string(b), "\r\n", "\n"))})
	}
	return out
}

// kinds are phrases by which a licence is recognised; the first that fits counts.
var kinds = []struct{ phrase, id string }{
	{"apache license version 2.0", "Apache-2.0"},
	{"mozilla public license", "MPL-2.0"},
	{"permission is hereby granted, free of charge", "MIT"},
	{"and distribute this software for any purpose", "ISC"},
	{"neither the name", "BSD-3-Clause"},
	{"redistribution and use in source and binary forms", "BSD-2-Clause"},
	{"public domain", "LicenseRef-public-domain"},
	{"mit license", "MIT"},
}

// states fits the files that state the licence of the module itself; notices, patent
// grants and lists of others' licences are kept in the text alone.
var states = regexp.MustCompile(`(?i)^(licen[sc]e|copying)([^3]*)$`)

// spdxExpression names the licences of the files, "" if one of them is unknown.
func spdxExpression(files []file) string {
	var ids []string
	for _, f := range files {
		if !states.MatchString(f.name) {
			continue
		}
		words := strings.Join(strings.Fields(strings.ToLower(f.text)), " ")
		words = strings.ReplaceAll(words, "license, version", "license version")
		for _, k := range kinds {
			if strings.Contains(words, k.phrase) {
				ids = append(ids, k.id)
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if slices.Contains(ids, "BSD-3-Clause") {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == "BSD-2-Clause" })
	}
	return strings.Join(ids, " AND ")
}

const textHead = `Third-party software in the weir binary

The binary links the modules below, on one platform or another and with the client of PostgreSQL, and its web page
contains the npm packages among them. Each text is followed by the modules that it applies to.
`

// notices returns the text of all terms, each once, in the order of the first module that has it.
func notices(list []source) string {
	type group struct {
		text string
		of   []string
	}
	var groups []*group
	byText := map[string]*group{}
	for _, s := range list {
		for _, f := range s.files {
			key := strings.Join(strings.Fields(f.text), " ")
			g := byText[key]
			if g == nil {
				g = &group{text: f.text}
				byText[key], groups = g, append(groups, g)
			}
			g.of = append(g.of, strings.TrimSpace(s.Path+" "+s.Version)+" ("+f.name+")")
		}
	}
	var b strings.Builder
	b.WriteString(textHead)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n%s\n\n%s\n\n", strings.Repeat("=", 80), g.text)
		fmt.Fprintf(&b, "Applies to:\n  %s\n", strings.Join(g.of, "\n  "))
	}
	return b.String()
}

const noticeHead = `Weir
Copyright 2026 The Weir Authors

Licensed under the Apache License, Version 2.0; see LICENSE.

The weir binary links the third-party modules listed below (those of github.com/jackc only if it is built with the
client of PostgreSQL), and its web page contains the npm packages. ` + "`weir licenses`" + ` prints their licences and notices in full; the text is internal/licenses/third_party.txt.

`

func notice(list []source) string {
	var b strings.Builder
	b.WriteString(noticeHead)
	for _, s := range list {
		path := s.Path
		if path == "std" {
			path = "Go standard library"
		}
		fmt.Fprintf(&b, "%s: %s\n", path, s.License)
	}
	return b.String()
}

func TestNoticesMatchLinkedModules(t *testing.T) {
	list := linked(t)
	modules := make([]licenses.Module, 0, len(list))
	for _, s := range list {
		modules = append(modules, s.Module)
	}
	asJSON, err := json.MarshalIndent(modules, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"third_party.txt":  notices(list),
		"third_party.json": string(asJSON) + "\n",
		"../../NOTICE":     notice(list),
	} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s is not up to date: run `make generate` and commit (%v)", path, err)
		}
	}
}

// Weir is Apache-2.0: what it links must not ask more of those who pass it on than to
// keep notices.
func TestLinkedModulesHavePermittedLicences(t *testing.T) {
	permissive := []string{"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD", "LicenseRef-public-domain"}
	modules, err := licenses.Modules()
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 10 {
		t.Fatalf("the list has %d modules", len(modules))
	}
	for _, m := range modules {
		for id := range strings.SplitSeq(m.License, " AND ") {
			if !slices.Contains(permissive, id) {
				t.Errorf("%s: licence %q is unknown or not permissive", m.Path, id)
			}
		}
	}
}

func TestTextNamesEveryModule(t *testing.T) {
	modules, err := licenses.Modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if !strings.Contains(licenses.Text(), "\n  "+strings.TrimSpace(m.Path+" "+m.Version)+" (") {
			t.Errorf("the text has no licence of %s", m.Path)
		}
	}
}

func TestModulesWithoutTextAreListed(t *testing.T) {
	modules, err := licenses.Modules()
	if err != nil {
		t.Fatal(err)
	}
	deps := []*debug.Module{{Path: modules[0].Path, Version: modules[0].Version}, {Path: "example.com/other", Version: "v1.2.3"}}
	want := []licenses.Module{{Path: "example.com/other", Version: "v1.2.3"}}
	if got := licenses.WithoutText(modules, deps); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
