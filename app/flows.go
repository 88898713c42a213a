package app

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
)

// ScriptProvider is the name of the provider that answers from script files. It needs no
// configuration.
const ScriptProvider = "script"

// Catalogue returns the node types that flows may use.
func Catalogue() (*node.Catalogue, error) { return node.NewCatalogue(builtin.Types()...) }

// LoadFlow reads a flow file and the flows that it uses, which must be in the folder of the
// file, in one of the given folders, or below. It executes nothing. An invalid
// flow gives a UsageError with a *flow.Invalid.
func LoadFlow(path string, folders ...string) (*flow.Flow, *node.Catalogue, error) {
	cat, err := Catalogue()
	if err != nil {
		return nil, nil, err
	}
	f, err := flow.Load(path, cat, folders...)
	if err != nil {
		return nil, nil, &UsageError{err}
	}
	return f, cat, nil
}

// ResolveScript makes the path in a model "script/FILE" absolute, so that the script is
// found again from any folder; a relative path starts at the folder of the flow's file. It
// returns other models unchanged. With needed set, a script that cannot be read is a
// UsageError.
func ResolveScript(model, flowFile string, needed bool) (string, error) {
	name, ok := strings.CutPrefix(model, ScriptProvider+"/")
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
		return "", &UsageError{err}
	}
	return ScriptProvider + "/" + path, nil
}

// recordedFlow returns the flow of the first run whose id begins with prefix; nil where
// there is no such run, or where its flow cannot be read. The command that follows reports
// that.
func recordedFlow(ctx context.Context, s weir.Store, prefix string) *weir.Flow {
	ids, err := s.FindRunIDs(ctx, prefix)
	if err != nil || len(ids) == 0 {
		return nil
	}
	r, err := s.Run(ctx, ids[0])
	if err != nil {
		return nil
	}
	cat, err := Catalogue()
	if err != nil {
		return nil
	}
	f, _, err := history.RecordedFlow(ctx, s, cat, r.Fingerprint, "")
	if err != nil {
		return nil
	}
	return f
}
