// Command bom writes the software bill of materials of a Go binary: a CycloneDX
// 1.6 document, as JSON, of the modules that the linker recorded in it, with the
// licences that internal/licenses knows.
//
//	bom BINARY > BINARY.cdx.json
//
// The document depends on the binary alone, so that a repeated build has the same.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/weir-run/weir/internal/licenses"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bom:", err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return errors.New("one binary is wanted")
	}
	code, err := os.ReadFile(args[0]) //nolint:gosec // the file that the command is given
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(code))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	modules, err := licenses.Modules()
	if err != nil {
		return err
	}
	doc, err := document(filepath.Base(args[0]), sha256.Sum256(code), info, modules)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(doc)
	return err
}

// bom is a CycloneDX document, as far as it is written.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// document describes the binary of that name and SHA-256. Each module that is
// linked must be among those whose licence is known.
func document(name string, sum [sha256.Size]byte, info *debug.BuildInfo, known []licenses.Module) ([]byte, error) {
	terms := map[string]string{}
	for _, m := range known {
		terms[m.Path] = m.License
	}
	binary := component{
		Ref: "pkg:golang/" + info.Main.Path, Type: "application", Name: name, Version: info.Main.Version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "vcs.revision" {
			binary.Properties = append(binary.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	doc := bom{Format: "CycloneDX", Spec: "1.6", Serial: serial(sum), Version: 1, Metadata: metadata{binary}}
	edges := dependency{Ref: binary.Ref}
	add := func(module, version, sum string) error {
		if terms[module] == "" {
			return fmt.Errorf("the licence of %s is not known: run go generate ./internal/licenses", module)
		}
		purl := "pkg:golang/" + module + "@" + version
		c := component{
			Ref: purl, Type: "library", Name: module, Version: version, PURL: purl, Licenses: []license{{terms[module]}},
		}
		if sum != "" {
			c.Properties = []property{{"go:sum", sum}}
		}
		doc.Components, edges.DependsOn = append(doc.Components, c), append(edges.DependsOn, purl)
		return nil
	}
	if err := add("std", strings.TrimPrefix(info.GoVersion, "go"), ""); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if err := add(m.Path, m.Version, m.Sum); err != nil {
			return nil, err
		}
	}
	for _, c := range pagePackages(info, known) {
		doc.Components, edges.DependsOn = append(doc.Components, c), append(edges.DependsOn, c.Ref)
	}
	doc.Dependencies = []dependency{edges}
	out, err := json.MarshalIndent(doc, "", "  ")
	return append(out, '\n'), err
}

// pagePackages returns the npm packages of the web page, none if the binary has no page.
func pagePackages(info *debug.BuildInfo, known []licenses.Module) (list []component) {
	for _, s := range info.Settings {
		if s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), "no_ui") {
			return nil
		}
	}
	for _, m := range known {
		name, ok := strings.CutPrefix(m.Path, licenses.NPM)
		if !ok {
			continue
		}
		purl := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + m.Version
		list = append(list, component{Ref: purl, Type: "library", Name: name, Version: m.Version, PURL: purl, Licenses: []license{{m.License}}})
	}
	return list
}

// serial returns a UUID (RFC 9562, version 8) of the binary's digest.
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
