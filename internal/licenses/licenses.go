// Package licenses contains the licences of the modules that the weir binary links, as
// a generated text and a generated list. Its test derives both from the module graph
// and fails if they differ from the files on disk.
//
// It must not read modules or files when the program runs: its data is embedded at
// build time.
package licenses

import (
	_ "embed"
	"encoding/json"
)

//go:generate go test -count=1 -run ^TestNoticesMatchLinkedModules . -update

// text is the licence of every module, each text once.
//
//go:embed third_party.txt
var text string

//go:embed third_party.json
var list []byte

// Module is one module that the binary links, or the standard library.
type Module struct {
	// Path is the module path, "std" for the standard library.
	Path string `json:"module"`
	// Version is that of go.mod, "" for the standard library.
	Version string `json:"version"`
	// License is the SPDX expression of the licence files at the root of the module.
	License string `json:"license"`
}

// Text returns every third-party licence and notice in full, about 100 KB.
func Text() string { return text }

// Modules lists what the binary links on any platform it is released for, sorted by path.
func Modules() ([]Module, error) {
	var out []Module
	err := json.Unmarshal(list, &out)
	return out, err
}
