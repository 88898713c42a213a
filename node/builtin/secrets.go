package builtin

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
)

// secretNames stands in for secrets where a request is identified: every
// secret reads as its name, so the digest says which secrets go where and
// nothing of what they are.
type secretNames struct{ ctx *node.Ctx }

// Lookup resolves what the node reads, and secrets by their names.
func (v secretNames) Lookup(name string) (any, bool) {
	if name == "secrets" {
		return v, true
	}
	return v.ctx.Lookup(name)
}

// Get is the stand-in of a secret.
func (v secretNames) Get(name string) (any, bool) { return hiddenSecret(name), true }

// Keys is empty: secrets cannot be listed.
func (v secretNames) Keys() []string { return nil }

func hiddenSecret(name string) string { return "[secret " + name + "]" }

// usedSecrets resolves secrets inside an effect and remembers them, so that
// they can be taken out of what comes back.
type usedSecrets struct {
	ctx  *node.Ctx
	used map[string]string // what must not be seen, and what stands for it
}

// minSecret is the shortest text that is taken out of results, in bytes; a
// shorter one is no secret, and its letters are everywhere.
const minSecret = 4

func newUsedSecrets(ctx *node.Ctx) *usedSecrets {
	return &usedSecrets{ctx: ctx, used: make(map[string]string)}
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
		v.hide(s, hiddenSecret(name))
	}
	return x, ok
}

// Keys is empty: secrets cannot be listed.
func (v *usedSecrets) Keys() []string { return nil }

// hide remembers a text, and the forms it takes in URLs and in JSON.
func (v *usedSecrets) hide(s, stand string) {
	if len(s) < minSecret {
		return
	}
	quoted, err := json.Marshal(s)
	if err == nil {
		v.used[strings.Trim(string(quoted), `"`)] = stand
	}
	v.used[url.QueryEscape(s)] = stand
	v.used[url.PathEscape(s)] = stand
	v.used[s] = stand
}

// derived remembers texts that were made of secrets (an encoded pair of user
// and password): the words of what was evaluated with secrets that are not
// there when it is evaluated with their names.
func (v *usedSecrets) derived(actual, named engine.Value) {
	switch r := actual.(type) {
	case string:
		n, _ := named.(string)
		known := strings.Fields(n)
		for word := range strings.FieldsSeq(r) {
			if len(v.used) > 0 && !slices.Contains(known, word) {
				if _, there := v.used[word]; !there {
					v.hide(word, "[secret]")
				}
			}
		}
	case map[string]any:
		n, _ := named.(map[string]any)
		for k, e := range r {
			v.derived(e, n[k])
		}
	case []any:
		n, _ := named.([]any)
		for i, e := range r {
			if i < len(n) {
				v.derived(e, n[i])
			}
		}
	}
}

// scrub takes every remembered text out of s, the longest first.
func (v *usedSecrets) scrub(s string) string {
	texts := slices.SortedFunc(maps.Keys(v.used), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	for _, t := range texts {
		s = strings.ReplaceAll(s, t, v.used[t])
	}
	return s
}
