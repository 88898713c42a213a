// Package node is the contract between a node type and a runner: the spec, the
// prepared node, and Ctx, through which a node reaches inputs, contexts, state,
// models, tools, time and random numbers.
//
// It must not know how nodes are scheduled, stored or shown. The catalogue is in
// node/builtin.
package node

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/flow"
)

// Type is one node type of the catalogue.
type Type interface {
	// Spec describes the type; always the same pointer.
	Spec() *flow.TypeSpec
	// Prepare converts the settings of one node, already validated by the spec, to an
	// executable node. It is called once for each loaded flow and executes nothing. An
	// error names the setting.
	Prepare(with map[string]any) (Node, error)
}

// Node is a prepared node. Run may be called many times, also concurrently, and again for
// the same attempt after a wait, a pull or a crash. It must perform every outside operation
// through ctx, and return at once the error of any ctx call that suspends (see
// ErrSuspended).
type Node interface {
	Run(ctx *Ctx) error
}

// NodeFunc is a function that implements Node.
type NodeFunc func(ctx *Ctx) error

// Run calls the function.
func (f NodeFunc) Run(ctx *Ctx) error { return f(ctx) }

// ErrSuspended is returned by calls of Ctx that cannot be answered yet. A node must return
// it; its Run is called again from the top once the answer is available.
var ErrSuspended = errors.New("node suspended")

// ErrNotRecorded is the error of an Effect that is OnlyRecorded and has no recorded result.
var ErrNotRecorded = errors.New("effect not recorded")

// Catalogue is an explicit list of node types. It implements flow.Catalogue.
type Catalogue struct {
	byName   map[string]Type
	specs    []*flow.TypeSpec
	settings flow.SettingsSchemas
}

// NewCatalogue returns a catalogue of the types. A duplicate name or alias is an error.
func NewCatalogue(types ...Type) (*Catalogue, error) {
	c := &Catalogue{byName: make(map[string]Type)}
	for _, t := range types {
		s := t.Spec()
		for _, n := range append([]string{s.Name}, s.Aliases...) {
			if n == "" || c.byName[n] != nil {
				return nil, fmt.Errorf("node type name %q is empty or used twice", n)
			}
			c.byName[n] = t
		}
		c.specs = append(c.specs, s)
	}
	slices.SortFunc(c.specs, func(a, b *flow.TypeSpec) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return c, nil
}

// Type returns the type with that name or alias, nil if there is none.
func (c *Catalogue) Type(name string) Type { return c.byName[name] }

// Lookup returns the spec with that name or alias, nil if there is none.
func (c *Catalogue) Lookup(name string) *flow.TypeSpec {
	if t := c.byName[name]; t != nil {
		return t.Spec()
	}
	return nil
}

// Specs lists the specs by name.
func (c *Catalogue) Specs() []*flow.TypeSpec { return slices.Clone(c.specs) }

// Settings returns the schemas of their settings, as far as flows have used the types.
func (c *Catalogue) Settings() *flow.SettingsSchemas { return &c.settings }
