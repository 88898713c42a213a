package builtin

import (
	"context"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/node"
)

// defaultCacheTTL is how long a value is kept where the settings do not say.
const defaultCacheTTL = 300 * time.Second

// cacheNode keeps a value across runs.
type cacheNode struct {
	Key template  `json:"key"`
	TTL *duration `json:"ttl"`
	// Shared keeps one value for all users.
	Shared bool `json:"shared"`
}

func cacheType() node.Type {
	return define[cacheNode](&flow.TypeSpec{
		Name:     "cache",
		Category: "data",
		Summary:  "Keeps a value for later runs, and does not compute it again while it is kept.",
		Doc: `Wire the result of slow or expensive nodes to the port ` + "`value`" + `. The port is lazy: while a value is kept under the
key, the nodes behind it do not run at all (unless something else needs them; they end
` + "`not_needed`" + `). Otherwise they run, and their value is kept and passed on.

| setting | what |
|---|---|
| ` + "`key`" + ` | what the value depends on: a template over ` + "`inputs.*`" + ` (whatever else is wired to the node), ` + "`state.*`" + ` and ` + "`run.*`" + ` |
| ` + "`shared`" + ` | keep one value for all users; by default each user has their own |
| ` + "`ttl`" + ` | how long to keep it (default 300 s; 0 keeps it for ever) |

| output | what |
|---|---|
| ` + "`value`" + ` | the value |
| ` + "`hit`" + ` | whether it was kept already |

Keys belong to the flow, by its name, and to the run's user: flows and users do not see each
other's values. With ` + "`shared: true`" + ` all users of the flow share a value: only use it for what is
no user's own. Deleting a user, or a session or run of theirs, deletes their values and the shared ones.`,
		Ports: flow.Ports{
			In: []flow.Port{{Name: "value", Type: flow.TypeAny, Required: true, Lazy: true, Description: "Where the value comes from."}},
			Out: []flow.Port{
				{Name: "value", Type: flow.TypeAny, Description: "The value, kept or new."},
				{Name: "hit", Type: flow.TypeBool, Description: "Whether it was kept already."},
			},
			AnyIn: true,
		},
		Settings: objectSchema(map[string]any{
			"key":    templateSchema("string", "What the value depends on."),
			"shared": map[string]any{"type": "boolean", "description": "Keep one value for all users. Default: each user has their own."},
			"ttl":    durationSchema("How long to keep the value; 0 for ever. Default: 300."),
		}, "key"),
		Examples: []flow.Example{{
			Name: "asked for once",
			Flow: `
weir: 1
name: thrifty
nodes:
  dear: {type: template, with: {text: "computed"}}
  kept:
    type: cache
    in: {value: "{{ dear.text }}"}
    with: {key: answer, ttl: 60s}
  again:
    type: cache
    after: kept
    in: {value: "{{ other.text }}"}
    with: {key: answer}
  other: {type: template, with: {text: "never needed"}}
outputs: {first: "{{ kept.hit }}", second: "{{ again.hit }}", value: "{{ again.value }}"}
`,
			Outputs: map[string]any{"first": false, "second": true, "value": "computed"},
		}},
	})
}

// Run looks up the key, and pulls the port only if no value is stored.
func (n *cacheNode) Run(ctx *node.Ctx) error {
	key, err := n.Key.text(ctx, "key")
	if err != nil {
		return err
	}
	key = "node/" + ctx.Info().Flow + "/" + key
	kept, err := n.lookUp(ctx, key)
	if err != nil {
		return err
	}
	if len(kept) == 1 {
		return outputCached(ctx, kept[0], true)
	}
	v, ok, err := ctx.Pull("value")
	if err != nil {
		return err
	}
	if !ok {
		return permanentError(CodeInput, "there is nothing to keep: what is wired to value was skipped")
	}
	if err := n.store(ctx, key, v); err != nil {
		return err
	}
	return outputCached(ctx, v, false)
}

// lookUp looks up the key as an effect, so that a run that continues later reads the same
// result: a list with the value, or an empty list.
func (n *cacheNode) lookUp(ctx *node.Ctx, key string) ([]any, error) {
	v, err := ctx.Do(node.Effect{Name: "lookup", Request: key, ReadOnly: true, Do: func(c context.Context, _ string) (node.Outcome, error) {
		v, ok, err := ctx.Cache().Get(c, node.CacheKey(ctx.Info().User, n.Shared, key))
		if err != nil {
			return node.Outcome{}, transientError(CodeCache, "look up %q: %v", excerpt.Bytes(key, maxValueBytes), err)
		}
		if !ok {
			return node.Outcome{Value: []any{}}, nil
		}
		return node.Outcome{Value: []any{v}}, nil
	}})
	if err != nil {
		return nil, err
	}
	list, _ := v.([]any)
	return list, nil
}

func (n *cacheNode) store(ctx *node.Ctx, key string, v engine.Value) error {
	ttl := defaultCacheTTL
	if n.TTL != nil {
		ttl = n.TTL.Duration
	}
	_, err := ctx.Do(node.Effect{Name: "keep", Request: []any{key, v}, ReadOnly: true, Do: func(c context.Context, _ string) (node.Outcome, error) {
		if err := ctx.Cache().Put(c, node.CacheKey(ctx.Info().User, n.Shared, key), v, ttl); err != nil {
			return node.Outcome{}, transientError(CodeCache, "keep %q: %v", excerpt.Bytes(key, maxValueBytes), err)
		}
		return node.Outcome{}, nil
	}})
	return err
}

// outputCached outputs the value and whether it came from the cache.
func outputCached(ctx *node.Ctx, v engine.Value, hit bool) error {
	ctx.Output("value", v)
	ctx.Output("hit", hit)
	ctx.Meta("cached", hit)
	return nil
}
