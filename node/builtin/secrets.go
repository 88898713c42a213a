package builtin

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/scrub"
)

// secretPlaceholders replaces secrets in the identity of a request: each secret evaluates
// to its name. The digest then identifies the secrets that are used and depends on none of
// their values.
type secretPlaceholders struct{ ctx *node.Ctx }

// Lookup resolves what the node reads, and secrets by their names.
func (v secretPlaceholders) Lookup(name string) (any, bool) {
	if name == "secrets" {
		return v, true
	}
	return v.ctx.Lookup(name)
}

// Get returns the stand-in of a secret.
func (v secretPlaceholders) Get(name string) (any, bool) { return secretPlaceholder(name), true }

// Len is 0: secrets cannot be listed.
func (v secretPlaceholders) Len() int { return 0 }

// All is empty: secrets cannot be listed.
func (v secretPlaceholders) All() map[string]any { return map[string]any{} }

func secretPlaceholder(name string) string { return "[secret " + name + "]" }

// usedSecrets resolves secrets inside an effect and remembers them, so that they can be
// removed from the response.
type usedSecrets struct {
	ctx  *node.Ctx
	used scrub.Set
}

func newUsedSecrets(ctx *node.Ctx) *usedSecrets {
	return &usedSecrets{ctx: ctx}
}

// Lookup resolves what the node reads, and secrets.
func (v *usedSecrets) Lookup(name string) (any, bool) {
	if name == "secrets" {
		return v, true
	}
	return v.ctx.Lookup(name)
}

// Get resolves one secret.
func (v *usedSecrets) Get(name string) (any, bool) {
	all, _ := v.ctx.Secrets().Lookup("secrets")
	object, ok := all.(expr.Object)
	if !ok {
		return nil, false
	}
	x, ok := object.Get(name)
	if s, isText := x.(string); ok && isText {
		v.addSecret(s, secretPlaceholder(name))
	}
	return x, ok
}

// Len is 0: secrets cannot be listed.
func (v *usedSecrets) Len() int { return 0 }

// All is empty: secrets cannot be listed.
func (v *usedSecrets) All() map[string]any { return map[string]any{} }

// addSecret remembers a text, which scrub then removes in every encoding.
func (v *usedSecrets) addSecret(s, stand string) { v.used.Add(s, stand) }

// addDerived remembers texts that were derived from secrets, such as an encoded pair of
// user and password: the words of the evaluated text that do not occur when secrets
// evaluate to their names.
func (v *usedSecrets) addDerived(actual, named engine.Value) {
	switch r := actual.(type) {
	case string:
		n, _ := named.(string)
		known := strings.Fields(n)
		for word := range strings.FieldsSeq(r) {
			if !v.used.IsEmpty() && !slices.Contains(known, word) {
				v.addSecret(word, "[secret]")
			}
		}
	case map[string]any:
		n, _ := named.(map[string]any)
		for k, e := range r {
			v.addDerived(e, n[k])
		}
	case []any:
		n, _ := named.([]any)
		for i, e := range r {
			if i < len(n) {
				v.addDerived(e, n[i])
			}
		}
	}
}

// scrub removes every remembered text from s.
func (v *usedSecrets) scrub(s string) string { return v.used.Scrub(s) }
