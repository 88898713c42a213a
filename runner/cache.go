package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/node"
)

// cacheSpec is the compiled `cache:` of a node.
type cacheSpec struct {
	key      *expr.Template // nil means everything on which the node may depend
	settings []byte
	// reads is what the settings read besides what every key contains.
	reads nodeReads
}

// prepareCache compiles a node's `cache:`; nil if there is none.
func prepareCache(n *engine.NodePlan) (*cacheSpec, error) {
	if !n.Def.Cache.On {
		return nil, nil
	}
	c := &cacheSpec{}
	var err error
	if n.Def.Cache.Key != "" {
		if c.key, err = expr.ParseTemplate(n.Def.Cache.Key); err != nil {
			return nil, fmt.Errorf("cache key: %w", err)
		}
	}
	c.reads.value(n.Def.With)
	if c.settings, err = engine.AppendValue(nil, n.Def.With); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	return c, nil
}

// runCached runs the node, or returns its outputs from the cache. An execution that also changed state or contexts is
// not cached, because its outputs are only a part of its result.
func (a *attempt) runCached() error {
	key, err := a.cacheKey()
	if err != nil {
		return err
	}
	cache := a.m.services.Cache
	v, ok, err := cache.Get(a.ctx, key)
	if err != nil {
		return fmt.Errorf("read the cache: %w", err)
	}
	if m, isObject := v.(map[string]any); ok && isObject {
		a.cacheHit = true
		for _, name := range sortedNames(m) {
			a.ctx.Output(name, m[name])
		}
		if len(a.Contexts) > 0 {
			a.ctx.Output("context", engine.Handle{ID: a.Contexts[0]})
		}
		return nil
	}
	if err := a.host.node.Run(&a.ctx); err != nil {
		return err
	}
	outputs, _, state := a.ctx.Result()
	if len(state) > 0 || a.hasLaneCommits || a.manager != nil && len(a.manager.Changes()) > 0 {
		return nil
	}
	keep := make(map[string]any, len(outputs))
	for _, o := range outputs {
		if _, handle := o.Value.(engine.Handle); !handle {
			keep[o.Name] = o.Value
		}
	}
	kept, err := engine.Normalize(keep)
	if err != nil {
		return err
	}
	if err := cache.Put(a.ctx, key, kept, a.Plan.Def.Cache.TTL); err != nil {
		return fmt.Errorf("write the cache: %w", err)
	}
	return nil
}

// cacheKey covers the type and its version, the settings, and either the node's inputs, state, run inputs and context
// messages, or the flow and the key that it gives.
func (a *attempt) cacheKey() (string, error) {
	c := a.host.cache
	given := map[string]any{"type": a.Plan.Spec.Name, "version": int64(a.Plan.Spec.Version), "settings": string(c.settings)}
	if c.key != nil {
		text, err := c.key.Text(&a.ctx)
		if err != nil {
			return "", fmt.Errorf("cache key: %w", err)
		}
		given["key"], given["flow"] = text, a.RunVars()["flow"] // no flow writes what another reads
	} else if err := a.addAllInputs(given); err != nil {
		return "", err
	}
	b, err := engine.AppendValue(nil, given)
	if err != nil {
		return "", fmt.Errorf("cache key: %w", err)
	}
	sum := sha256.Sum256(b)
	key := "node:" + a.Plan.Spec.Name + ":" + hex.EncodeToString(sum[:])
	return node.CacheKey(a.ctx.Info().User, a.Plan.Def.Cache.Shared, key), nil
}

func (a *attempt) addAllInputs(given map[string]any) error {
	given["inputs"], given["state"] = a.ctx.Inputs(), a.ctx.State().All()
	given["run"] = []any{a.RunVars()["inputs"], a.RunVars()["user"], a.RunVars()["flow"]}
	if a.Plan.Def.Cache.Shared { // users must not share a key because of their names
		given["run"] = []any{a.RunVars()["inputs"], a.RunVars()["flow"]}
	}
	reads := &a.host.cache.reads
	for name := range reads.run {
		given["run."+name] = a.RunVars()[name]
	}
	if reads.now { // differs in every attempt
		given["attempt"] = node.UUIDSeed(a.m.run.ID, a.Path, a.Attempt)
	}
	if len(a.contexts) == 0 {
		return nil
	}
	messages, err := a.contexts[0].Messages()
	if err != nil {
		return err
	}
	given["messages"], given["context"] = messages, a.contexts[0].Settings
	return nil
}

func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
