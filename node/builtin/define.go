package builtin

import (
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// definedType is a spec and the constructor of its nodes.
type definedType struct {
	spec    *flow.TypeSpec
	prepare func(with map[string]any) (node.Node, error)
}

// Spec describes the type.
func (t *definedType) Spec() *flow.TypeSpec { return t.spec }

// Prepare decodes the settings of one node.
func (t *definedType) Prepare(with map[string]any) (node.Node, error) { return t.prepare(with) }

// defaulter is a node whose settings have defaults that are not zero.
type defaulter interface{ setDefaults() }

// settingsFinisher is a node that prepares part of its settings after they are decoded.
type settingsFinisher interface{ finish() error }

// define makes a node type whose settings struct T is the node: its fields are
// the settings, its Run the node's work.
func define[T any, P interface {
	*T
	node.Node
}](spec *flow.TypeSpec) node.Type {
	spec.Version = max(spec.Version, 1)
	if spec.Reads == nil && spec.Uses == nil {
		spec.Reads = readsSettingsOnly
	}
	if spec.AsksModels == nil && spec.Uses == nil {
		spec.AsksModels = never
	}
	if spec.ActsOutside == nil {
		spec.ActsOutside = never
	}
	return &definedType{spec: spec, prepare: func(with map[string]any) (node.Node, error) {
		settings, err := decode[T](with)
		if err != nil {
			return nil, err
		}
		n := P(settings)
		if d, ok := any(n).(defaulter); ok {
			d.setDefaults()
		}
		if f, ok := any(n).(settingsFinisher); ok {
			if err := f.finish(); err != nil {
				return nil, err
			}
		}
		return n, nil
	}}
}

// readsSettingsOnly is TypeSpec.Reads of types that read no input beyond their ports
// but by the expressions in their settings.
func readsSettingsOnly(map[string]any) ([]string, bool) { return nil, false }

// always and never are TypeSpec.AsksModels and TypeSpec.ActsOutside of types whose settings do
// not matter for it.
func always(map[string]any) bool { return true }
func never(map[string]any) bool  { return false }
