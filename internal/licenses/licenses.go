// Package licenses contains the licences of the modules that the weir binary contains, as
// a generated text and a generated list. Its test derives both from the module graph
// and fails if they differ from the files on disk.
//
// It must not read modules or files when the program runs: its data is embedded at
// build time.
package licenses

import (
	_ "embed"
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"
)

//go:generate go test -count=1 -run ^TestNoticesMatchLinkedModules . -update

// text is the licence of every module, each text once.
//
//go:embed third_party.txt
var text string

//go:embed third_party.json
var list []byte

// NPM begins the path of a module that is an npm package of the web page.
const NPM = "npm:"

// Module is one module that the binary links, an npm package that its web page contains, or
// the standard library.
type Module struct {
	// Path is the module path, "std" for the standard library, or NPM and the name of a package.
	Path string `json:"module"`
	// Version is that of go.mod, "" for the standard library.
	Version string `json:"version"`
	// License is the SPDX expression of the licence files at the root of the module.
	License string `json:"license"`
}

// Text returns every third-party licence and notice in full, about 100 KB.
func Text() string { return text }

// Modules lists what the binary links on any platform it is released for and with the build tag
// postgres, and the npm packages of its web page, sorted by path.
func Modules() ([]Module, error) {
	var out []Module
	err := json.Unmarshal(list, &out)
	return out, err
}

// WithoutText lists the modules among those that the linker recorded in a program (deps) whose licences Text lacks:
// the program was built from packages besides those of the weir binary.
func WithoutText(modules []Module, deps []*debug.Module) []Module {
	var out []Module
	for _, d := range deps {
		has := func(m Module) bool { return m.Path == d.Path }
		if !slices.ContainsFunc(modules, has) && !strings.HasPrefix(d.Path, "github.com/weir-run/weir") {
			out = append(out, Module{Path: d.Path, Version: d.Version})
		}
	}
	return out
}
