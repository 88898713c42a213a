package builtin

import (
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// nodeType is a spec and the constructor of its nodes.
type nodeType struct {
	spec    *flow.TypeSpec
	prepare func(with map[string]any) (node.Node, error)
}

// Spec describes the type.
func (t *nodeType) Spec() *flow.TypeSpec { return t.spec }

// Prepare decodes the settings of one node.
func (t *nodeType) Prepare(with map[string]any) (node.Node, error) { return t.prepare(with) }

// defaulter is a node whose settings have defaults that are not zero.
type defaulter interface{ setDefaults() }

// finisher is a node that has to prepare something of its settings.
type finisher interface{ finish() error }

// define makes a node type whose settings struct T is the node: its fields are
// the settings, its Run the node's work.
func define[T any, P interface {
	*T
	node.Node
}](spec *flow.TypeSpec) node.Type {
	spec.Version = max(spec.Version, 1)
	if spec.Reads == nil && spec.Uses == nil {
		spec.Reads = settingsAlone
	}
	if spec.AsksModels == nil && spec.Uses == nil {
		spec.AsksModels = never
	}
	return &nodeType{spec: spec, prepare: func(with map[string]any) (node.Node, error) {
		settings, err := decode[T](with)
		if err != nil {
			return nil, err
		}
		n := P(settings)
		if d, ok := any(n).(defaulter); ok {
			d.setDefaults()
		}
		if f, ok := any(n).(finisher); ok {
			if err := f.finish(); err != nil {
				return nil, err
			}
		}
		return n, nil
	}}
}

// settingsAlone is TypeSpec.Reads of types that read no input beyond their ports
// but by the expressions in their settings.
func settingsAlone(map[string]any) ([]string, bool) { return nil, false }

// always and never are TypeSpec.AsksModels of types whose settings do not matter for it.
func always(map[string]any) bool { return true }
func never(map[string]any) bool  { return false }
