package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/weir-run/weir/llm/recorded"
)

// iteration is the part of a path that counts.
var iteration = regexp.MustCompile(`#(\d+)/`)

// absoluteScript resolves a model "script/FILE" relative to the flow's folder, so
// that the run finds its script again from anywhere; needed says that the
// script has to be there. Other models it returns as they are.
func absoluteScript(model, flowFile string, needed bool) (string, error) {
	name, ok := strings.CutPrefix(model, scriptProvider+"/")
	if !ok {
		return model, nil
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(flowFile), name)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if err := recorded.CheckScript(path); needed && err != nil {
		return "", &usageError{err}
	}
	return scriptProvider + "/" + path, nil
}
