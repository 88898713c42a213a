package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-run/weir"
)

// ServedFlow is a flow that a server offers.
type ServedFlow struct {
	*weir.Flow
	// File is where it was read from.
	File string
	// Text is what the file had when it was read.
	Text string
	// Model is the flow's model; the path of a script is absolute.
	Model string
}

// LoadFlows reads the flows of files and folders, sorted by name. Of a folder it reads the
// files *.yaml, *.yml and *.json directly in it that have the key `weir` of flow files; a
// folder also holds scripts, tests and other data. The folders are those of LoadFlow. It
// executes nothing. A UsageError names a file that is not a valid flow, and flows of one name.
func LoadFlows(folders []string, paths ...string) ([]ServedFlow, error) {
	var out []ServedFlow
	for _, path := range paths {
		files, err := flowFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("flows: %w", err)
			}
			f, _, err := LoadFlow(file, folders...)
			if err != nil {
				return nil, err
			}
			served := ServedFlow{Flow: f, File: file, Text: string(text)}
			if served.Model, err = ResolveScript(f.Context.Model, file, false); err != nil {
				return nil, err
			}
			out = append(out, served)
		}
	}
	slices.SortFunc(out, func(a, b ServedFlow) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.File, b.File))
	})
	for i := 1; i < len(out); i++ {
		if out[i].Name == out[i-1].Name {
			return nil, usagef("the files %s and %s are both flows with the name %q; a server offers one flow of a name", out[i-1].File, out[i].File, out[i].Name)
		}
	}
	return out, nil
}

// flowFiles returns the flow files that a path names.
func flowFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("flows: %w", err)
	}
	key := regexp.MustCompile(flowKey)
	var files []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(path, name))
		if err != nil {
			return nil, usagef("%w", err)
		}
		if key.Match(text) {
			files = append(files, filepath.Join(path, name))
		}
	}
	return files, nil
}

// flowKey finds the key of flow files at the beginning of a line, or in JSON anywhere.
const flowKey = `(?m)^["']?weir["']?\s*:|"weir"\s*:`
