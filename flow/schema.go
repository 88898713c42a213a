package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of flow files in both forms, with the
// settings of every node type of the catalogue, for editors and `weir schema`. What a
// schema cannot express (references, cycles, port types) only Parse checks.
func Schema(c Catalogue) ([]byte, error) {
	var names []any
	var byType []any
	settings := map[string]any{}
	for _, sp := range c.Specs() {
		var spelled []any
		for _, n := range append([]string{sp.Name}, sp.Aliases...) {
			spelled = append(spelled, n)
		}
		names = append(names, spelled...)
		s, err := schemaOf(sp)
		if err != nil {
			return nil, fmt.Errorf("schema of node type %s: %w", sp.Name, err)
		}
		settings[sp.Name] = s
		then := obj{"properties": obj{"with": obj{"$ref": "#/$defs/settings/" + sp.Name}}}
		if required, ok := s["required"].([]any); ok && len(required) > 0 {
			then["required"] = []any{"with"}
		}
		byType = append(byType, obj{
			"if":   obj{"properties": obj{"type": obj{"enum": spelled}}, "required": []any{"type"}},
			"then": then,
		})
	}
	node := nodeSchema(names)
	if len(byType) > 0 {
		node["allOf"] = byType
	}
	root := obj{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Weir flow",
		"$defs":   obj{"node": node, "graph": graphSchema(), "settings": settings, "duration": durationSchema(), "edge": edgeSchema()},
		"type":    "object", "required": []any{"weir", "name", "nodes"}, "additionalProperties": false,
		"properties": flowProperties(),
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of flow files: %w", err)
	}
	return append(out, '\n'), nil
}

type obj = map[string]any

func schemaOf(sp *TypeSpec) (obj, error) {
	s := newSettingsSchema(sp)
	err := s.invalid
	if err == nil {
		_, err = s.compile()
	}
	if err != nil {
		return nil, err
	}
	raw := anchored(s.raw, "#/$defs/settings/"+sp.Name)
	if sp.Composite {
		props := obj{}
		if p, ok := raw["properties"].(obj); ok {
			props = p
		}
		props[sp.bodyKey()] = bodySchema(sp)
		required, _ := raw["required"].([]any)
		raw["properties"], raw["required"] = props, append(slices.Clone(required), sp.bodyKey())
	}
	if sp.Summary != "" {
		raw["description"] = sp.Summary
	}
	return raw, nil
}

// bodySchema returns the schema of the setting that has the graph, or graphs, of a composite.
func bodySchema(sp *TypeSpec) obj {
	graph := obj{"$ref": "#/$defs/graph"}
	if !sp.Branches {
		return graph
	}
	return obj{"type": "object", "minProperties": minBranches, "propertyNames": portNameSchema(), "additionalProperties": graph}
}

// anchored returns a copy of a schema with references to its root rewritten for its new
// place, and in which templated settings accept any text as well.
func anchored(schema obj, root string) obj {
	out := make(obj, len(schema))
	for k, v := range schema {
		if ref, ok := v.(string); ok && k == "$ref" && strings.HasPrefix(ref, "#") {
			out[k] = root + strings.TrimPrefix(ref, "#")
			continue
		}
		out[k] = anchoredValue(v, root)
	}
	if r := roleOf(schema); (r == roleTemplate || r == roleSecret) && schema["type"] != nil && schema["type"] != "string" {
		return obj{"x-weir": schema["x-weir"], "anyOf": []any{out, obj{"type": "string", "pattern": `\{\{`}}}
	}
	return out
}

func anchoredValue(v any, root string) any {
	switch t := v.(type) {
	case obj:
		return anchored(t, root)
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = anchoredValue(e, root)
		}
		return out
	}
	return v
}

func flowProperties() obj {
	text, tokens := obj{"type": "string"}, obj{"type": "integer", "minimum": 1}
	props, _ := graphSchema()["properties"].(obj)
	props["weir"] = obj{"const": Version}
	props["name"] = obj{"type": "string", "minLength": 1, "maxLength": MaxName}
	props["description"] = text
	props["context"] = contextSchema(text, tokens)
	props["session"] = sessionsSchema()
	props["budget"] = spendSchema()
	props["timeout"] = obj{"$ref": "#/$defs/duration", "description": "Limits the time of a run, from its start to its end."}
	props["inputs"] = obj{"type": []any{"object", "null"}, "propertyNames": portNameSchema(), "additionalProperties": closed(obj{
		"type": obj{"enum": portTypes()}, "required": obj{"type": "boolean"}, "default": true, "description": text, "schema": obj{"type": "object"},
	})}
	props["uses"] = obj{
		"type": []any{"object", "null"}, "additionalProperties": obj{"type": "string", "pattern": pinPattern},
		"description": "the fingerprints of the flows that nodes run, by reference; in the normal form",
	}
	props["state"] = obj{"type": []any{"object", "null"}, "additionalProperties": closed(obj{
		"scope":   obj{"enum": []any{ScopeRun, ScopeSession, ScopeUser}, "description": "How long the value lives: as long as the run, the session or the user. Default: run."},
		"reducer": obj{"enum": []any{"append", "max", "merge", "min", "replace", "sum"}}, "initial": true, "schema": obj{"type": "object"},
		"onConflict": obj{
			"enum":        []any{ConflictFail, ConflictRetryRound},
			"description": "What happens to a run that completes with another value for a key with the scope user which another run has changed since: it fails, or its round starts again. Without it, the reducer combines the writes.",
		},
	})}
	return props
}

func contextSchema(text, tokens obj) obj {
	model, duration := obj{"type": "string", "pattern": ".+/.+"}, obj{"$ref": "#/$defs/duration"}
	var codes []any
	for _, c := range FallbackCodes() {
		codes = append(codes, c)
	}
	return closed(obj{
		"model": model, "system": text, "reasoning": text,
		"models": obj{
			"type": "array", "minItems": minModels, "uniqueItems": true, "items": model,
			"description": "Models in place of model: the first one is asked, and the next one if that fails.",
		},
		"on":          obj{"type": "array", "minItems": 1, "uniqueItems": true, "items": obj{"enum": codes}, "description": "The codes of the failures after which the next of models is asked."},
		"callTimeout": closed(obj{"first": duration, "idle": duration, "total": duration}),
		"temperature": obj{"type": "number", "minimum": 0, "maximum": 2}, "maxOutput": tokens,
		"history": obj{
			"enum":        []any{"client", "server"},
			"description": "Who keeps the conversation. server lets a provider that can (OpenAI's Responses, Gemini's Interactions) keep it, so that calls send only what is new; others are sent the whole. Default: client.",
		},
		"budget": closed(obj{"window": tokens, "reserve": tokens}),
		"view":   contextViewSchema(),
	})
}

func spendSchema() obj {
	s := closed(obj{
		"maxTokens": obj{"type": "integer", "minimum": 1, "maximum": int64(maxSpendTokens)},
		"maxCalls":  obj{"type": "integer", "minimum": 1, "maximum": int64(maxSpendCalls)},
		"maxCost":   obj{"type": "number", "exclusiveMinimum": 0, "maximum": 1e6},
		"onLimit":   obj{"enum": []any{"fail", "pause", "branch"}},
	})
	s["anyOf"] = []any{
		obj{"required": []any{"maxTokens"}}, obj{"required": []any{"maxCost"}}, obj{"required": []any{"maxCalls"}},
	}
	return s
}

// ViewSchema returns the JSON Schema of a View.
func ViewSchema() map[string]any {
	tokens := obj{"type": "integer", "minimum": 1, "maximum": maxViewTokens}
	var known []any
	for _, s := range strategies() {
		known = append(known, s)
	}
	view := closed(obj{
		"strategy": obj{"enum": known, "description": "What happens when the history outgrows its room. Default: window."},
		"low":      obj{"type": "integer", "minimum": 1, "maximum": 100, "description": "The size after a cut, in per cent of the room. Default: 60."},
		"keepResults": obj{
			"type": "integer", "minimum": -1, "maximum": maxKeepResults, "not": obj{"const": 0},
			"description": "The number of newest tool results that keep their text; -1 clears none. Default: 3.",
		},
		"maxResult": obj{"type": "integer", "minimum": 1, "maximum": maxViewTokens, "description": "The number of tokens of one tool result that are shown. Default: a quarter of the room."},
		"summary":   tokens,
		"model":     obj{"type": "string", "description": "The model that makes summaries. Default: the model of the call."},
	})
	view["description"] = "How the context is reduced when it outgrows its budget."
	view["allOf"] = unreadViewKeys()
	return view
}

// contextViewSchema returns the schema of the view of a flow's context, which has the default
// strategy if it names none.
func contextViewSchema() obj {
	view := ViewSchema()
	var unread []any
	for _, key := range UnreadByStrategy(DefaultStrategy) {
		unread = append(unread, obj{"required": []any{key}})
	}
	named := obj{"required": []any{"strategy"}}
	view["allOf"] = append(unreadViewKeys(), obj{"if": obj{"not": named}, "then": obj{"not": obj{"anyOf": unread}}})
	return view
}

// unreadViewKeys refuses the keys that a strategy does not read.
func unreadViewKeys() []any {
	var out []any
	for _, s := range strategies() {
		var unread []any
		for _, key := range UnreadByStrategy(s) {
			unread = append(unread, obj{"required": []any{key}})
		}
		if unread != nil {
			is := obj{"required": []any{"strategy"}, "properties": obj{"strategy": obj{"const": s}}}
			out = append(out, obj{"if": is, "then": obj{"not": obj{"anyOf": unread}}})
		}
	}
	return out
}

func closed(properties obj) obj {
	return obj{"type": "object", "additionalProperties": false, "properties": properties}
}

func nameSchema() obj {
	return obj{"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"}
}

func graphSchema() obj {
	s := closed(obj{
		"nodes":   obj{"type": "object", "minProperties": 1, "propertyNames": nameSchema(), "additionalProperties": obj{"$ref": "#/$defs/node"}},
		"edges":   obj{"type": []any{"array", "null"}, "items": obj{"$ref": "#/$defs/edge"}},
		"outputs": obj{"type": []any{"object", "null"}, "propertyNames": portNameSchema()},
	})
	s["required"] = []any{"nodes"}
	return s
}

func edgeSchema() obj {
	s := closed(obj{
		"id":   obj{"type": "string", "maxLength": MaxEdgeID},
		"from": obj{"type": "string", "description": "node.port, or a node for a control edge; all after the first dot is the name of the port"},
		"to":   obj{"type": "string", "description": "node.port, or a node for a control edge; all after the first dot is the name of the port"}, "metadata": obj{"type": "object"},
	})
	s["required"] = []any{"from", "to"}
	return s
}

func durationSchema() obj {
	return obj{"type": []any{"string", "integer"}, "description": "30s, 5m, 1h30m, or whole seconds", "minimum": 0}
}

func nodeSchema(types []any) obj {
	text, flag, duration := obj{"type": "string"}, obj{"type": "boolean"}, obj{"$ref": "#/$defs/duration"}
	texts := obj{"anyOf": []any{text, obj{"type": "array", "items": text}}}
	s := closed(obj{
		"type": obj{"enum": types}, "description": text,
		"in":      obj{"type": []any{"object", "null"}, "description": "values by input port; {{ node.port }} makes an edge"},
		"after":   obj{"anyOf": []any{texts, obj{"type": "null"}}, "description": "nodes, or NODE.BRANCH, that run first"},
		"with":    obj{"type": []any{"object", "null"}},
		"context": obj{"type": []any{"string", "null"}, "description": "main, or the node whose context this one uses"},
		"join":    obj{"enum": []any{"any", "all"}},
		"retry": obj{
			"type": "object", "additionalProperties": false, "required": []any{"attempts"},
			"properties": obj{"attempts": obj{"type": "integer", "minimum": 1, "maximum": 100}, "backoff": duration, "on": texts},
		},
		"timeout":   obj{"anyOf": []any{duration, closed(obj{"total": duration, "idle": duration})}},
		"onError":   obj{"anyOf": []any{obj{"const": "fail"}, obj{"type": "object", "required": []any{"value"}, "additionalProperties": false, "properties": obj{"value": true}}}},
		"cache":     obj{"anyOf": []any{flag, closed(obj{"ttl": duration, "key": text, "shared": flag})}},
		"isolation": obj{"enum": []any{"fresh", "fork", "share"}}, "budget": spendSchema(), "interruptBefore": flag, "interruptAfter": flag,
		"artifacts": artifactsSchema(),
	})
	s["required"] = []any{"type"}
	return s
}
